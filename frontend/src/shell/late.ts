/** Parts that the first picture does without, loaded after it. */

import { signal } from "@preact/signals";
import { begin, finish } from "../state/frames";

type Late = typeof import("./later");

export const late = signal<Late | null>(null);
let asked = false;

export function loadLate(): void {
  if (asked) return;
  asked = true;
  queueMicrotask(begin);
  const loaded = (part: Late | null) => {
    late.value = part;
    finish();
  };
  void import("./later").then(loaded, () => loaded(null));
}
