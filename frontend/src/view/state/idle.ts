/** Tells tests (and nobody else) when nothing is under way: `data-pastnet-idle` on the root element. */

import { effect, type ReadonlySignal, signal, untracked } from "@preact/signals";

/** Requests and timers under way; the progress bar reads it too. */
export const pending = signal(0);
let waiting = 0;
let generation = 0;

const busy = () => pending.peek() + waiting > 0;

function settle(): void {
  const own = ++generation;
  document.documentElement.dataset.pastnetIdle = "false";
  if (busy()) return;
  // Two frames: one to render what the last change asks for, one to paint it.
  requestAnimationFrame(() =>
    requestAnimationFrame(() => {
      if (own === generation && !busy()) document.documentElement.dataset.pastnetIdle = "true";
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

/** Does something in the frame after some others; it counts as under way, but not as loading. */
export function afterFrames(frames: number, action: () => void): void {
  waiting++;
  settle();
  const next = (left: number) =>
    requestAnimationFrame(() => {
      if (left > 1) return next(left - 1);
      waiting--;
      action();
      settle();
    });
  next(frames);
}

/** Marks each change of these signals: something renders, and may ask for more. */
export function watch(signals: readonly ReadonlySignal<unknown>[]): void {
  effect(() => {
    for (const one of signals) one.value;
    untracked(settle);
  });
}
