/** Tells tests (and nobody else) when nothing is under way: `data-pastnet-idle` on the root element. */

import { computed, effect, type ReadonlySignal, signal, untracked } from "@preact/signals";

/** Requests and timers under way. */
const pending = signal(0);
export const loading = computed(() => pending.value > 0);
let waiting = 0;
let generation = 0;
let checking = false;

const busy = () => pending.peek() + waiting > 0;

/** After two frames, one to render what the last change asks for and one to paint it, unless there is another change. */
function check(seen: number): void {
  requestAnimationFrame(() =>
    requestAnimationFrame(() => {
      if (!busy() && seen !== generation) return check(generation);
      checking = false;
      if (!busy()) document.documentElement.dataset.pastnetIdle = "true";
    }),
  );
}

function settle(): void {
  generation++;
  document.documentElement.dataset.pastnetIdle = "false";
  if (checking || busy()) return;
  checking = true;
  check(generation);
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
