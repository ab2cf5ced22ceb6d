/** The linked step cursor: which step all panels read at, and how keys move it. */

import { computed } from "@preact/signals";
import { lastAtOrBefore } from "../../model/series";
import { chosen, pairLayer } from "../compare/pair";
import { probed } from "../function/places";
import { activeLayer, activeRun, cellsOf, layerIn, range, shownRuns, viewedRuns } from "./data";
import { finestOf } from "./detail";
import { hover, step, update, view } from "./store";

/** The step of the cursor: the chosen one, or the end, which it follows: of the run of the Layer view, else of most runs. */
export const cursor = computed(() => step.value ?? followed.value);

const followed = computed(() => {
  const own = view.value === "layer" && activeRun.value;
  const lasts = (own ? [own] : viewedRuns.value).map((run) => run.last_step ?? 0).sort((a, b) => b - a);
  return lasts[lasts.length >> 1] ?? 0;
});

/** The step that panels read at: under the pointer while it hovers, else the cursor. */
export const readStep = computed(() => hover.value?.step ?? cursor.value);

/** The steps that ← and → walk: those of the records drawn. */
function recordSteps(): number[] {
  const steps = new Set<number>();
  const layer = (view.value === "compare" ? pairLayer : activeLayer).value;
  const drawn = view.value === "layer" ? [activeRun.value] : view.value === "compare" ? (chosen.value ?? []) : [];
  for (const run of drawn) {
    if (!run || !layer || !layerIn(run, layer.id)) continue;
    for (const s of cellsOf(run.name, layer.id).value?.steps ?? []) steps.add(s);
  }
  if (view.value === "function") {
    for (const { series } of probed.value) for (const s of series.steps) steps.add(s);
  }
  if (steps.size === 0) {
    for (const run of shownRuns.value) for (const s of finestOf(run.name)?.starts ?? []) steps.add(s);
    for (const run of shownRuns.value) if (run.last_step !== null) steps.add(run.last_step);
  }
  return [...steps].filter((s) => s >= range.value[0] && s < range.value[1]).sort((a, b) => a - b);
}

export function moveCursor(records: number): void {
  const steps = recordSteps();
  if (steps.length === 0) return;
  const here = lastAtOrBefore(steps, cursor.value);
  const exact = here >= 0 && steps[here] === cursor.value;
  const target = records < 0 && !exact ? here + 1 + records : here + records;
  setStep(steps[Math.min(steps.length - 1, Math.max(0, target))]);
}

export function moveCursorTo(end: "first" | "last"): void {
  const steps = recordSteps();
  if (steps.length === 0) return;
  // At the end the cursor follows what comes.
  if (end === "last" && followed.value < range.value[1]) update({ step: null });
  else setStep(end === "first" ? steps[0] : steps[steps.length - 1]);
}

export function setStep(value: number): void {
  update({ step: Math.round(value) });
}
