/** The linked step cursor: which step all panels read at, and how keys move it from record to record. */

import { computed } from "@preact/signals";
import { lastAtOrBefore } from "../data/steps";
import { activeRun, range, viewedRuns } from "./runs";
import { hover, step, update, view } from "./store";

/** The last record in sight: of the run of the Layer view, else of most runs. */
const followed = computed(() => {
  const own = view.value === "layer" && activeRun.value;
  const [from, to] = range.value;
  const lasts = (own ? [own] : viewedRuns.value)
    .map(({ recordSteps }) => recordSteps[lastAtOrBefore(recordSteps, to - 1e-9)])
    .filter((last) => last >= from)
    .sort((a, b) => b - a);
  return lasts[lasts.length >> 1] ?? from;
});

/** The step of the cursor: the chosen one as long as it is in sight, or the end, which it follows. */
export const cursor = computed(() => {
  const [from, to] = range.value;
  return step.value !== null && step.value >= from && step.value < to ? step.value : followed.value;
});

/** The step that panels read at: under the pointer while it hovers, else the cursor. */
export const readStep = computed(() => hover.value?.step ?? cursor.value);

/** As far as they are in sight. */
function sighted(steps: Float64Array): Float64Array {
  const [from, to] = range.value;
  return steps.subarray(lastAtOrBefore(steps, from - 1e-9) + 1, lastAtOrBefore(steps, to - 1e-9) + 1);
}

/** ← and →: so many records on or back. */
export function moveCursor(all: Float64Array, records: number): void {
  const steps = sighted(all);
  if (steps.length === 0) return;
  const here = lastAtOrBefore(steps, cursor.value);
  const exact = here >= 0 && steps[here] === cursor.value;
  const target = records < 0 && !exact ? here + 1 + records : here + records;
  setStep(steps[Math.min(steps.length - 1, Math.max(0, target))]);
}

/** Jumps to the first record, or to the latest and follows it. */
export function moveCursorTo(all: Float64Array, end: "first" | "last"): void {
  const steps = sighted(all);
  if (end === "last") update({ step: null });
  else if (steps.length > 0) setStep(steps[0]);
}

export function setStep(value: number): void {
  update({ step: Math.round(value) });
}
