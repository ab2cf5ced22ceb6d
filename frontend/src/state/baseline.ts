/** The run that the others are compared with, and how far they are from it. */

import { computed } from "@preact/signals";
import { type Cells, cellAt } from "../data/cells";
import { differenceCells } from "../data/difference";
import { kept } from "../data/kept";
import { differenceOf, differenceText, measureName, measureOf, timesText } from "../data/measure";
import type { Measure, ViewName } from "../data/urlstate";
import { cellsOf } from "./answers";
import { blockAt, figuresAt } from "./at";
import { cursor } from "./cursor";
import type { Resource } from "./resource";
import { layerIn, type Run, runs, shownRuns, totalLayers } from "./runs";
import { baseline, measure, spoken, update, versus, view } from "./store";

/** Views that can show differences to the baseline. */
const VIEWS: readonly ViewName[] = ["network", "layer"];

/** The chosen run, shown or not; else the first one shown. */
export const baselineRun = computed<Run | null>(
  () => runs.value.find((run) => run.name === baseline.value && run.records > 0) ?? shownRuns.value[0] ?? null,
);

export const isBaseline = (run: Run): boolean => run.name === baselineRun.value?.name;

/** Whether there is anything to compare with it in this view. */
export const canDiffer = computed(() => VIEWS.includes(view.value) && shownRuns.value.some((run) => !isBaseline(run)));

export const differs = computed(() => versus.value && canDiffer.value);

/** D: differences from the baseline, or values; of the compared runs, B becomes the baseline. */
export function toggleVersus(): void {
  if (view.value === "compare" && baselineRun.value) update({ other: baselineRun.value.name });
  if (!canDiffer.value) return;
  const on = !versus.value;
  update({ versus: on });
  spoken.value = on ? `Differences from ${baselineRun.value?.name}` : "Values";
}

/** The run that this one is drawn against; null where its own values are shown. */
export const baseOf = (run: Run): Run | null => (differs.value && !isBaseline(run) ? baselineRun.value : null);

/** The measure of some layers of a run at a step; NaN where there is none. */
export function measured(run: Run, layers: readonly string[], step: number, which: Measure): number {
  const figures = figuresAt(run, layers, step);
  return figures ? measureOf(figures, which) : Number.NaN;
}

/** The chosen measure as it is shown: the value, or how far it is from the baseline's. */
export function shownMeasure(run: Run, layers: readonly string[], step: number): number {
  if (!differs.value || !baselineRun.value) return measured(run, layers, step, measure.value);
  return isBaseline(run) ? 0 : baselineDiff(run, baselineRun.value, layers, step);
}

/** The first answer that is lacking for the measure of a run as it is shown; null where all are there. */
export function lackingAt(run: Run, step: number): Resource<unknown> | null {
  const base = baseOf(run);
  const answers = [blockAt(run, step), base && blockAt(base, step)];
  return answers.find((answer) => answer && !answer.value) ?? null;
}

/** How far the chosen measure of some layers is from the baseline's at a step. */
export function baselineDiff(run: Run, base: Run, layers: readonly string[], step: number): number {
  const which = measure.value;
  return differenceOf(measured(run, layers, step, which), measured(base, layers, step, which), which);
}

/** "still moving −26.0 pp vs dense", of some layers at the cursor, by default all */
export function baselineDiffText(run: Run, base: Run, layers: readonly string[] = totalLayers.value): string {
  const difference = baselineDiff(run, base, layers, cursor.value);
  return `${measureName(measure.value)} ${differenceText(difference, measure.value)} vs ${base.name}`;
}

/** Whether channels of two runs are the same ones: only where they started from the same weights. */
export const sameOrigin = (a: Run, b: Run): boolean => Boolean(a.origin) && a.origin === b.origin;

interface LayerDifference {
  cells: Cells | null;
  /** Why there are none. */
  reason: string | null;
  /** The baseline's layer, where they are to be computed from it. */
  asked?: Resource<Cells>;
}

const differencesOf = kept((own: Cells) => kept((base: Cells) => differenceCells(own, base)));

/** A layer of a run against the same one of the baseline, channel by channel. */
export function layerDifference(run: Run, base: Run, layer: string, own: Cells): LayerDifference {
  const refuse = (reason: string) => ({ cells: null, reason });
  if (!run.origin || !base.origin)
    return refuse(`It isn't known whether ${run.name} and ${base.name} started from the same weights`);
  if (run.origin !== base.origin) return refuse(`${run.name} and ${base.name} started from different weights`);
  if (!layerIn(base, layer)) return refuse(`${base.name} has no such layer`);
  const asked = cellsOf(base.name, layer);
  const other = asked.value;
  if (!other) return { cells: null, reason: asked.error && `${base.name} isn't loaded`, asked };
  if (other.channels !== own.channels) return refuse(`The layer of ${base.name} has ${other.channels} channels`);
  return { cells: differencesOf(own)(other), reason: null, asked };
}

/**
 * A channel of the baseline at a step, and the ratio of another delta to its own: "×3.2"; null where it has no record.
 */
export function baseCell(base: Run, layer: string, channel: number, step: number) {
  const { value: cells } = cellsOf(base.name, layer);
  const cell = cells && cellAt(cells, channel, step);
  return cell && { ...cell, times: (delta: number) => timesText(differenceOf(delta, cell.delta, "delta")) };
}
