/** Signals that follow others some frames later. */

import { effect, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { later, PATIENCE } from "./later";

/** Those that something on the page shows. */
const shown = new WeakSet<object>();

/** A signal that may follow another. */
export function follower<T>(value: T): Signal<T> {
  const one: Signal<T> = signal(value, {
    watched: () => void shown.add(one),
    unwatched: () => void shown.delete(one),
  });
  return one;
}

/** Follows a signal, in a frame of its own after the one that shows the change; at once where nothing shows it. */
export function follow<T>(one: Signal<T>, source: ReadonlySignal<T>, patience = PATIENCE): void {
  const catchUp = () => {
    one.value = source.peek();
  };
  catchUp();
  effect(() => {
    if (source.value === one.peek()) return;
    if (shown.has(one)) later(catchUp, catchUp, { alone: true, patience });
    else catchUp();
  });
}
