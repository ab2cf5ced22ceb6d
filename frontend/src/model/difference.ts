/** Two runs of one layer, channel by channel: what is alive in which, and how much more one moves. */

import type { Cells } from "./cells";
import { DELTA_NAN } from "./delta";
import type { MaskKind } from "./hash";
import { columnAt, lastAtOrBefore } from "./series";
import { FROZEN, NO_DATA, PRUNED, STATE_BITS } from "./states";

export const UNKNOWN = 0;
export const BOTH = 1;
export const ONLY_A = 2;
export const ONLY_B = 3;
export const NEITHER = 4;

/** Channels over the steps of both runs, one value a cell. */
export interface Grid {
  steps: Float64Array;
  end: number;
  channels: number;
  /** [channel * steps + step] */
  values: Int8Array;
}

/** Whether a channel takes part: not pruned, and for the trainable mask not frozen either. */
export const isAlive = (state: number, mask: MaskKind): boolean =>
  state !== PRUNED && (mask === "kept" || state !== FROZEN);

function classOf(a: number, b: number, mask: MaskKind): number {
  if (a === NO_DATA || b === NO_DATA) return UNKNOWN;
  return (isAlive(a, mask) ? 0 : 2) + (isAlive(b, mask) ? 0 : 1) + BOTH;
}

/** Fills a grid over the steps of both, whose records in force give a value each. */
function fill(a: Cells, b: Cells, empty: number, value: (at: number, other: number) => number): Grid {
  const steps = Float64Array.from(new Set([...a.steps, ...b.steps])).sort();
  const k = steps.length;
  const record = (cells: Cells) =>
    Int32Array.from(steps, (step) => (step >= cells.end ? -1 : lastAtOrBefore(cells.steps, step)));
  const [own, other] = [record(a), record(b)];
  const values = new Int8Array(a.channels * k).fill(empty);
  for (let c = 0; c < a.channels; c++) {
    for (let t = 0; t < k; t++) {
      if (own[t] < 0 || other[t] < 0) continue;
      values[c * k + t] = value(c * a.records + own[t], c * b.records + other[t]);
    }
  }
  return { steps, end: Math.max(a.end, b.end), channels: a.channels, values };
}

/** In which of the two runs each channel is alive. Both must have the same channels. */
export function aliveIn(a: Cells, b: Cells, mask: MaskKind): Grid {
  const table = Uint8Array.from({ length: 64 }, (_, i) => classOf(i >> 3, i & 7, mask));
  return fill(a, b, UNKNOWN, (at, other) => table[((a.state[at] & STATE_BITS) << 3) | (b.state[other] & STATE_BITS)]);
}

/** The difference that the ends of the diverging scale stand for, in decades. */
export const DECADES = 2;
export const STEPS_A_SIDE = 127;
export const NO_DIFFERENCE = -128;

/** log10 of a relative delta as the scale has it: what is under the threshold counts as the threshold, from 1 on as 1. */
function level(code: number, threshold: number): number {
  return Math.max(Math.log10(threshold), Math.min(0, (code / 16) * Math.log10(2)));
}

/** B − A of two delta codes in decades, NaN where one isn't a number. */
export function decadesApart(a: number, b: number, threshold: number): number {
  return a === DELTA_NAN || b === DELTA_NAN ? Number.NaN : level(b, threshold) - level(a, threshold);
}

/** How much more each channel moves in B, as steps of the diverging scale. */
export function movesMore(a: Cells, b: Cells, threshold: number): Grid {
  const levels = Float64Array.from({ length: 65536 }, (_, i) => level(i - 32768, threshold));
  levels[DELTA_NAN + 32768] = Number.NaN;
  return fill(a, b, NO_DIFFERENCE, (at, other) => {
    const apart = levels[b.delta[other] + 32768] - levels[a.delta[at] + 32768];
    const known = a.state[at] & STATE_BITS && b.state[other] & STATE_BITS;
    if (!known || Number.isNaN(apart)) return NO_DIFFERENCE;
    return Math.round(Math.max(-1, Math.min(1, apart / DECADES)) * STEPS_A_SIDE);
  });
}

/** Channels of each class at a step, or null where nothing is recorded. */
export function countsAt(grid: Grid, step: number): number[] | null {
  const column = columnAt({ starts: grid.steps, end: grid.end }, step);
  if (column < 0) return null;
  const counts = [0, 0, 0, 0, 0];
  for (let c = 0; c < grid.channels; c++) counts[grid.values[c * grid.steps.length + column]]++;
  return counts;
}
