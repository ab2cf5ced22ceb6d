/** Signals that follow others some frames later. */

import { effect, type ReadonlySignal, type Signal } from "@preact/signals";
import { later, PATIENCE } from "./later";

/** Follows a signal, in a frame of its own after the one that shows the change. */
export function follow<T>(follower: Signal<T>, source: ReadonlySignal<T>, patience = PATIENCE): void {
  const catchUp = () => {
    follower.value = source.peek();
  };
  catchUp();
  effect(() => {
    if (source.value !== follower.peek()) later(catchUp, catchUp, { alone: true, patience });
  });
}
