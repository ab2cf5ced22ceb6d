/** Tells tests (and nobody else) when nothing is under way: `data-pastnet-idle` on the root element. */

import { effect, type ReadonlySignal, signal, untracked } from "@preact/signals";

/** Requests and timers under way; the progress bar reads it too. */
export const pending = signal(0);
let generation = 0;

function settle(): void {
  const own = ++generation;
  document.documentElement.dataset.pastnetIdle = "false";
  if (pending.peek() > 0) return;
  // Two frames: one to render what the last change asks for, one to paint it.
  requestAnimationFrame(() =>
    requestAnimationFrame(() => {
      if (own === generation && pending.peek() === 0) document.documentElement.dataset.pastnetIdle = "true";
    }),
  );
}

export function begin(): void {
  pending.value++;
  settle();
}

export function finish(): void {
  pending.value--;
  settle();
}

/** Marks each change of these signals: something renders, and may ask for more. */
export function watch(signals: readonly ReadonlySignal<unknown>[]): void {
  effect(() => {
    for (const one of signals) one.value;
    untracked(settle);
  });
}
