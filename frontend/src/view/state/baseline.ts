/** The run that the others are compared with, and how far they are from it. */

import { computed } from "@preact/signals";
import type { Cells } from "../../model/cells";
import { deltaAt } from "../../model/cells";
import type { Measure, View } from "../../model/hash";
import { differenceOf, differenceText, measureIn, measureName, timesText } from "../../model/measure";
import { sumOf } from "../../model/overview";
import { columnAt, lastAtOrBefore } from "../../model/series";
import { STATE_BITS } from "../../model/states";
import { differenceCells } from "../../model/versus";
import { cursor } from "./cursor";
import { cellsOf, layerIn, type Run, rows, runs, shownRuns } from "./data";
import { overviewAt } from "./detail";
import { baseline, measure, versus, view } from "./store";

/** Views that can show differences to the baseline. */
const VIEWS: readonly View[] = ["network", "layer"];

/** The chosen run, shown or not; else the first one shown. */
export const baselineRun = computed<Run | null>(
  () => runs.value.find((run) => run.name === baseline.value && run.records > 0) ?? shownRuns.value[0] ?? null,
);

export const isBaseline = (run: Run): boolean => run.name === baselineRun.value?.name;

/** Whether there is anything to compare with it in this view. */
export const canDiffer = computed(() => VIEWS.includes(view.value) && shownRuns.value.some((run) => !isBaseline(run)));

export const differs = computed(() => versus.value && canDiffer.value);

/** The run that this one is drawn against; null where its own values are shown. */
export const against = (run: Run): Run | null => (differs.value && !isBaseline(run) ? baselineRun.value : null);

/** The measure of some layers of a run at a step; NaN where there is none. */
export function measured(run: Run, layers: readonly string[], step: number, which: Measure): number {
  const overview = overviewAt(run.name, step);
  const series = overview && sumOf(overview, layers);
  const column = series ? columnAt(series, step) : -1;
  return series && column >= 0 ? measureIn(series, column, column + 1, which) : Number.NaN;
}

/** How far the chosen measure of some layers is from the baseline's at a step. */
export function apart(run: Run, base: Run, layers: readonly string[], step: number): number {
  const which = measure.value;
  return differenceOf(measured(run, layers, step, which), measured(base, layers, step, which), which);
}

/** "still moving −26.0 points against dense", of some layers at the cursor, by default all */
export function apartText(run: Run, base: Run, layers: readonly string[] = rows.value[0]?.layers ?? []): string {
  const difference = apart(run, base, layers, cursor.value);
  return `${measureName(measure.value)} ${differenceText(difference, measure.value)} against ${base.name}`;
}

/** Whether channels of two runs are the same ones: only where they started from the same weights. */
export const sameOrigin = (a: Run, b: Run): boolean => Boolean(a.origin) && a.origin === b.origin;

interface LayerDifference {
  cells: Cells | null;
  /** Why there are none. */
  reason: string | null;
}

const made = new WeakMap<Cells, WeakMap<Cells, Cells>>();

function differenceTo(own: Cells, base: Cells): Cells {
  const kept = made.get(own) ?? new WeakMap<Cells, Cells>();
  made.set(own, kept);
  const cells = kept.get(base) ?? differenceCells(own, base);
  kept.set(base, cells);
  return cells;
}

/** A layer of a run against the same one of the baseline, channel by channel. */
export function layerDifference(run: Run, base: Run, layer: string, own: Cells): LayerDifference {
  const refuse = (reason: string) => ({ cells: null, reason });
  if (!run.origin || !base.origin)
    return refuse(`It isn't known whether ${run.name} and ${base.name} started from the same weights`);
  if (run.origin !== base.origin) return refuse(`${run.name} and ${base.name} started from different weights`);
  if (!layerIn(base, layer)) return refuse(`${base.name} has no such layer`);
  const { value: other, error } = cellsOf(base.name, layer);
  if (!other) return { cells: null, reason: error };
  if (other.channels !== own.channels) return refuse(`The layer of ${base.name} has ${other.channels} channels`);
  return { cells: differenceTo(own, other), reason: null };
}

interface BaseCell {
  state: number;
  delta: number;
  /** "×3.2": how a delta stands to the baseline's. */
  times: (own: number) => string;
}

/** A channel of the baseline at a step, null where it has no record. */
export function baseCell(base: Run, layer: string, channel: number, step: number): BaseCell | null {
  const cells = cellsOf(base.name, layer).value;
  const record = !cells || step >= cells.end ? -1 : lastAtOrBefore(cells.steps, step);
  if (!cells || record < 0 || channel >= cells.channels) return null;
  const at = channel * cells.records + record;
  const delta = deltaAt(cells, at);
  return { state: cells.state[at] & STATE_BITS, delta, times: (own) => timesText(differenceOf(own, delta, "delta")) };
}
