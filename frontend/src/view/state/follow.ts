/** Signals that follow others some frames later, one a frame: no frame has the work of all panels to do. */

import { effect, type ReadonlySignal, type Signal } from "@preact/signals";
import { afterFrames } from "./idle";

/** Those that are behind, the one first that has waited longest. */
const behind = new Set<() => void>();
let waiting = false;

function wait(frames: number): void {
  waiting = true;
  afterFrames(frames, () => {
    waiting = false;
    for (const catchUp of behind) {
      behind.delete(catchUp);
      catchUp();
      break;
    }
    if (behind.size > 0) wait(1);
  });
}

/** Follows a signal, from the frame on after the one that shows its change. */
export function follow<T>(follower: Signal<T>, source: ReadonlySignal<T>): void {
  const catchUp = () => {
    follower.value = source.peek();
  };
  catchUp();
  effect(() => {
    if (source.value === follower.peek()) return;
    behind.add(catchUp);
    // Events come before the callbacks of their frame.
    if (!waiting) wait(2);
  });
}
