/** Draws answers that come at about the same time at once: one picture of all is sooner there than one of each. */

import { batch } from "@preact/signals";

/** For so long an answer waits for others of its kind. */
const TOGETHER_MS = 100;
/** Of each kind, those that are looked at and still under way. */
const awaited = new Map<string, number>();
const arrived = new Map<() => void, string>();

/** Says that an answer of a kind is on its way; call what it gives when it is no longer. */
export function expectOne(kind: string): () => void {
  awaited.set(kind, (awaited.get(kind) ?? 0) + 1);
  return () => void awaited.set(kind, awaited.get(kind)! - 1);
}

/** Calls back in a frame, together with the others. */
export function deliver(kind: string, change: () => void): void {
  arrived.set(change, kind);
  if (arrived.size > 1) return;
  const since = performance.now();
  const draw = () => {
    const more = [...arrived.values()].some((one) => (awaited.get(one) ?? 0) > 0);
    if (more && performance.now() - since < TOGETHER_MS) return void requestAnimationFrame(draw);
    const changes = [...arrived.keys()];
    arrived.clear();
    batch(() => {
      for (const one of changes) one();
    });
  };
  requestAnimationFrame(draw);
}
