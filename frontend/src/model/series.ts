/** Shares of channel states over steps: what a strip draws, for a layer, a group or a network. */

import { MOVING, NO_DATA, STATES } from "./states";

/** An answer's own section, or a sum. */
export type Numbers = Float64Array | Float32Array | Uint32Array;

export interface Series {
  /** First step of each column, rising. */
  starts: Float64Array;
  /** Last step of each column. */
  ends: Float64Array;
  /** Where the last column ends on the axis (exclusive): one gap between records after its last step. */
  end: number;
  /** Channels per column and state, [k * STATES + state]. */
  counts: Numbers;
  violated: Numbers;
  nonfinite: Numbers;
  /** Mean relative delta of the moving channels, NaN where none moves. */
  meanDelta: Numbers;
  channels: number;
  /** Pruned weights at the end of each column, of the `prunable` ones; null where the server doesn't tell. */
  pruned: Float64Array | null;
  prunable: number;
}

export const columnsOf = (series: Series): number => series.starts.length;

/** The end of the axis after the last column: a single record is one step wide. */
export function axisEnd(starts: Float64Array, ends: Float64Array): number {
  const k = starts.length;
  if (k === 0) return 0;
  return ends[k - 1] + Math.max(1, k > 1 ? starts[k - 1] - ends[k - 2] : 1);
}

/** The index of the last value that is not above `step`, or -1; `starts` rises. */
export function lastAtOrBefore(starts: ArrayLike<number>, step: number): number {
  let low = 0;
  let high = starts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (starts[middle] <= step) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The column that holds `step`, or -1 before the first record and after the last one's width. */
export function columnAt(series: { starts: Float64Array; end: number }, step: number): number {
  return step >= series.end ? -1 : lastAtOrBefore(series.starts, step);
}

/** Series of the same columns, added: the mean delta is weighted by the channels that move. */
export function addSeries(parts: Series[]): Series {
  const first = parts[0];
  if (parts.length === 1) return first;
  const k = columnsOf(first);
  const sum: Series = {
    starts: first.starts,
    ends: first.ends,
    end: first.end,
    counts: new Float64Array(k * STATES),
    violated: new Float64Array(k),
    nonfinite: new Float64Array(k),
    meanDelta: new Float64Array(k),
    channels: 0,
    pruned: first.pruned && new Float64Array(k),
    prunable: 0,
  };
  const weights = new Float64Array(k);
  for (const part of parts) {
    sum.channels += part.channels;
    sum.prunable += part.prunable;
    for (let i = 0; i < k * STATES; i++) sum.counts[i] += part.counts[i];
    for (let j = 0; j < k; j++) {
      sum.violated[j] += part.violated[j];
      if (sum.pruned && part.pruned) sum.pruned[j] += part.pruned[j];
      sum.nonfinite[j] += part.nonfinite[j];
      const moving = part.counts[j * STATES + MOVING];
      if (moving > 0 && !Number.isNaN(part.meanDelta[j])) {
        sum.meanDelta[j] += moving * part.meanDelta[j];
        weights[j] += moving;
      }
    }
  }
  for (let j = 0; j < k; j++) sum.meanDelta[j] = weights[j] > 0 ? sum.meanDelta[j] / weights[j] : Number.NaN;
  return sum;
}

export interface Readout {
  /** Channels by state code. */
  counts: number[];
  /** Channels that have data. */
  total: number;
  violated: number;
  nonfinite: number;
  meanDelta: number;
  /** Pruned weights of the prunable ones; NaN where that isn't known. */
  pruned: number;
  prunable: number;
  firstStep: number;
  lastStep: number;
}

/** The numbers at a step, or null where nothing is recorded there. */
export function readAt(series: Series, step: number): Readout | null {
  const j = columnAt(series, step);
  if (j < 0) return null;
  const counts = Array.from(series.counts.subarray(j * STATES, (j + 1) * STATES));
  return {
    counts,
    total: counts.reduce((sum, count) => sum + count, 0) - counts[NO_DATA],
    violated: series.violated[j],
    nonfinite: series.nonfinite[j],
    meanDelta: series.meanDelta[j],
    pruned: series.pruned?.[j] ?? Number.NaN,
    prunable: series.prunable,
    firstStep: series.starts[j],
    lastStep: series.ends[j],
  };
}

/** Readouts of several runs added, for the legend; null where none has data. */
export function addReadouts(readouts: (Readout | null)[]): Readout | null {
  const found = readouts.filter((readout) => readout !== null);
  if (found.length === 0) return null;
  const counts = found[0].counts.map((_, state) => found.reduce((sum, readout) => sum + readout.counts[state], 0));
  return {
    counts,
    total: found.reduce((sum, readout) => sum + readout.total, 0),
    violated: found.reduce((sum, readout) => sum + readout.violated, 0),
    nonfinite: found.reduce((sum, readout) => sum + readout.nonfinite, 0),
    meanDelta: Number.NaN,
    pruned: found.reduce((sum, readout) => sum + readout.pruned, 0),
    prunable: found.reduce((sum, readout) => sum + readout.prunable, 0),
    firstStep: Math.min(...found.map((readout) => readout.firstStep)),
    lastStep: Math.max(...found.map((readout) => readout.lastStep)),
  };
}

export interface Violating {
  most: number;
  firstStep: number;
}

const violating = new WeakMap<Series, Violating | null>();

/** The largest count of violated channels in any column, and the first step of the first such column; kept per series. */
export function violations(series: Series): Violating | null {
  let found = violating.get(series);
  if (found !== undefined) return found;
  let most = 0;
  let firstStep = Number.NaN;
  for (let j = 0; j < columnsOf(series); j++) {
    if (series.violated[j] > 0 && Number.isNaN(firstStep)) firstStep = series.starts[j];
    most = Math.max(most, series.violated[j]);
  }
  found = most > 0 ? { most, firstStep } : null;
  violating.set(series, found);
  return found;
}
