/** Answers that arrive together are drawn together: one picture of all is sooner there than one of each. */

import { batch } from "@preact/signals";
import { schedule } from "./frames";

/** For so long an answer waits for others of its kind. */
const TOGETHER_MS = 100;
/** Of each kind, those that are looked at and still under way. */
const awaited = new Map<string, number>();
const arrived = new Map<() => void, string>();

/** Says that an answer of a kind is on its way; call what it gives when it is no longer, or no longer awaited. */
export function expectAnswer(kind: string): () => void {
  awaited.set(kind, (awaited.get(kind) ?? 0) + 1);
  let coming = 1;
  return () => {
    awaited.set(kind, awaited.get(kind)! - coming);
    coming = 0;
  };
}

/** Calls back in a frame, together with the others. */
export function deliver(kind: string, change: () => void): void {
  arrived.set(change, kind);
  if (arrived.size > 1) return;
  const since = performance.now();
  schedule("input", arrived, () => {
    const more = [...arrived.values()].some((other) => (awaited.get(other) ?? 0) > 0);
    if (more && performance.now() - since < TOGETHER_MS) return true;
    const changes = [...arrived.keys()];
    arrived.clear();
    batch(() => {
      for (const show of changes) show();
    });
  });
}
