/** Signals that follow others some frames later. */

import { effect, type ReadonlySignal, type Signal } from "@preact/signals";
import { afterFrames } from "./idle";

/**
 * Follows a signal, no more often than once in so many frames.
 *
 * @param frames 2 is the frame after the one that shows the change: events come before the callbacks of their frame.
 */
export function follow<T>(follower: Signal<T>, source: ReadonlySignal<T>, frames: number): void {
  let waiting = false;
  const catchUp = () => {
    waiting = false;
    follower.value = source.peek();
  };
  catchUp();
  effect(() => {
    if (source.value === follower.peek() || waiting) return;
    waiting = true;
    afterFrames(frames, catchUp);
  });
}
