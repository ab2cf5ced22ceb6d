/**
 * How far outputs moved on the probe: the records of one run, how they are read, and the change of weights that goes
 * with it.
 */

import { type Container, section } from "../server/container";
import type { FunctionHeader, FunctionPlace } from "../server/types";
import { formatNumber, formatShape, formatShare, plural } from "./format";
import { kept, keptByValue } from "./kept";
import type { Figures } from "./record";
import { FOLLOWING, FROZEN, MOVING, NONFINITE, PRUNED, QUIET, REACTIVATED } from "./states";
import { axisEnd, lastAtOrBefore } from "./steps";
import { CHANGES, type Change } from "./urlstate";

export interface FunctionSeries {
  header: FunctionHeader;
  steps: Float64Array;
  pastSteps: Float64Array;
  /** Where the last record ends on the axis (exclusive). */
  end: number;
  /** [(measure * places + place) * records + record] */
  values: Float32Array;
  /** The row of a place by its key. */
  rows: ReadonlyMap<string, number>;
}

export const CHANGE_TITLES: Record<Change, string> = {
  relative: "Relative",
  cosine: "1 − cosine",
  divergence: "KL divergence",
  decisions: "Changed predictions",
};

/** What the axis holds, between the outputs y of now and y′ of the past. */
export const CHANGE_HINTS: Record<Change, string> = {
  relative: "‖y − y′‖ / ‖y′‖",
  cosine: "1 − cosine of y and y′",
  divergence: "KL(p′ ‖ p) in nats, mean of the samples",
  decisions: "samples whose predicted class changed",
};

/** A layer and an output may have one name. */
export const placeKey = (place: Pick<FunctionPlace, "kind" | "name">): string => `${place.kind}/${place.name}`;

export function readFunction(container: Container<FunctionHeader>): FunctionSeries {
  const { header } = container;
  const steps = section(container, "steps", Float64Array);
  return {
    header,
    steps,
    pastSteps: section(container, "past_steps", Float64Array),
    end: axisEnd(steps, steps),
    values: section(container, "values", Float32Array),
    rows: new Map(header.places.map((place, row) => [placeKey(place), row])),
  };
}

/** Stands for a cosine that float32 rounds to 1 although the output moved: less than half of 2⁻²⁴. */
export const ROUNDED = 2 ** -25;

/** A value as it is shown, 0 where nothing changed: of the cosine what it lacks to 1. NaN where there is none. */
export function changeOf(series: FunctionSeries, change: Change, row: number | undefined, record: number): number {
  if (row === undefined) return Number.NaN;
  const { places, measures } = series.header;
  const read = (measure: Change) => {
    const m = measures.indexOf(measure);
    return m < 0 ? Number.NaN : series.values[(m * places.length + row) * series.steps.length + record];
  };
  const value = read(change);
  // A sum of logarithms may end a rounding under 0.
  if (change !== "cosine" || Number.isNaN(value)) return Math.max(0, value);
  if (value < 1) return 1 - value;
  return read("relative") === 0 ? 0 : ROUNDED;
}

/** The record in force at a step: the newest at or before it; -1 before the first one. */
export const probedAt = (series: FunctionSeries, step: number): number => lastAtOrBefore(series.steps, step);

/** The value in force at a step; NaN where there is none. */
export function changeAt(series: FunctionSeries, change: Change, key: string, step: number): number {
  const record = probedAt(series, step);
  return record < 0 ? Number.NaN : changeOf(series, change, series.rows.get(key), record);
}

/** The largest of the values in a range [from, to) of records; NaN where there is none. */
export function largestOf(
  series: FunctionSeries,
  change: Change,
  row: number | undefined,
  from: number,
  to: number,
): number {
  let largest = Number.NaN;
  for (let t = from; t < to; t++) {
    const value = changeOf(series, change, row, t);
    if (!(value <= largest) && !Number.isNaN(value)) largest = value;
  }
  return largest;
}

/** The measures that a place has in any of the runs. */
export function measuresAt(list: readonly FunctionSeries[], key: string): Change[] {
  return CHANGES.filter((change) =>
    list.some((series) => !Number.isNaN(largestOf(series, change, series.rows.get(key), 0, series.steps.length))),
  );
}

/** An axis of changes: decades where it is logarithmic, else 0 to `high`. */
export interface ChangeAxis {
  log: boolean;
  low: number;
  high: number;
}

/** A logarithmic axis of whole decades that holds all positive values; `most` decades at most, counted from the top. */
export function decadesOf(values: Iterable<number>, most: number): ChangeAxis {
  let low = Number.POSITIVE_INFINITY;
  let top = 0;
  for (const value of values) {
    if (!(value > 0) || value === Number.POSITIVE_INFINITY) continue;
    low = Math.min(low, value);
    top = Math.max(top, value);
  }
  if (top === 0) return { log: true, low: -3, high: 0 };
  const high = Math.ceil(Math.log10(top) - 1e-9);
  return { log: true, low: Math.min(high - 1, Math.max(Math.floor(Math.log10(low) + 1e-9), high - most)), high };
}

/** The smallest and the largest of the values that are neither 0 nor infinite, of one place or (null) of all. */
function extremes(series: FunctionSeries, change: Change, key: string | null): [number, number] {
  let [low, high] = [Number.POSITIVE_INFINITY, 0];
  for (const row of key === null ? series.rows.values() : [series.rows.get(key)]) {
    for (let t = 0; t < series.steps.length; t++) {
      const value = changeOf(series, change, row, t);
      if (!(value > 0) || value === Number.POSITIVE_INFINITY) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  return [low, high];
}

const extremesOf = kept((series: FunctionSeries) => {
  const byChange = (change: Change) => keptByValue((key: string | null) => extremes(series, change, key));
  return keptByValue(byChange);
});

/** An axis for all values of a measure, of one place or (null) of all, of `most` decades at most. */
export function changeAxis(
  list: readonly FunctionSeries[],
  change: Change,
  key: string | null,
  most: number,
): ChangeAxis {
  const values = list.flatMap((series) => extremesOf(series)(change)(key));
  if (change !== "decisions") return decadesOf(values, most);
  const high = [0.1, 0.2, 0.5].find((share) => !values.some((value) => value > share && Number.isFinite(value))) ?? 1;
  return { log: false, low: 0, high };
}

/** A value's place on an axis, 0 to 1; infinity is at the top. */
export function changePlace(axis: ChangeAxis, value: number): number {
  const place = axis.log ? (Math.log10(value) - axis.low) / (axis.high - axis.low) : value / axis.high;
  return Math.min(1, Math.max(0, place));
}

/** About `count` ticks of an axis, from its top. */
export function changeTicks(axis: ChangeAxis, count: number): number[] {
  if (!axis.log) return [axis.high, axis.high / 2, 0];
  const every = Math.ceil((axis.high - axis.low) / count);
  const ticks: number[] = [];
  for (let decade = axis.high; decade >= axis.low; decade -= every) ticks.push(10 ** decade);
  return ticks;
}

/** 2.1×10⁻³; of decisions 3 of 100 samples as 3.0%. */
export function formatChange(value: number, change: Change): string {
  if (value === ROUNDED) return "<6×10⁻⁸";
  if (change === "decisions" && !Number.isNaN(value)) return formatShare(value, 1);
  return formatNumber(value);
}

/** "32 samples of 8×8×1 float32, digest 5a0c9f3e", one of each input. */
export function probeText(probe: FunctionHeader["probe"]): string[] {
  return probe.map(({ name, shape, dtype, digest }) => {
    const what = shape.length > 0 ? `${plural(shape[0], "sample")} of ${formatShape(shape.slice(1))}` : "a scalar";
    return `${name === "" ? "" : `${name}: `}${what} ${dtype}${digest ? `, digest ${digest.slice(0, 8)}` : ""}`;
  });
}

export interface Move {
  layer: string;
  /** Mean relative delta of unfrozen channels, 0 where none changed; NaN where that isn't known. */
  weights: number;
  /** Relative change of the output; NaN where there is none. */
  output: number;
  /** What most channels are where none changed; quiet: trainable, but bit-identical. */
  state: number;
}

function weightsOf({ counts, meanDelta }: Figures): [number, number] {
  if (counts[MOVING] > 0) return [meanDelta, meanDelta === 0 ? QUIET : MOVING];
  const [still] = [FROZEN, PRUNED, QUIET, FOLLOWING].sort((a, b) => counts[b] - counts[a]);
  const unknown = counts[REACTIVATED] + counts[FOLLOWING] + counts[NONFINITE] > 0 || counts[still] === 0;
  return [unknown ? Number.NaN : 0, still];
}

/**
 * Each layer that has both, at the record of the probe in force at a step.
 *
 * @param figuresOf the figures of a layer at that record's step, as if no channel were ever quiet.
 */
export function movesAt(
  series: FunctionSeries,
  layers: readonly string[],
  step: number,
  figuresOf: (layer: string, step: number) => Figures | null,
): Move[] {
  const record = probedAt(series, step);
  if (record < 0) return [];
  return layers.flatMap((layer) => {
    const row = series.rows.get(placeKey({ kind: "layer", name: layer }));
    const figures = row === undefined ? null : figuresOf(layer, series.steps[record]);
    if (!figures) return [];
    const [weights, state] = weightsOf(figures);
    return [{ layer, weights, output: changeOf(series, "relative", row, record), state }];
  });
}
