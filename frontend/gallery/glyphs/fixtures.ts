/** Data that glyphs draw: each number is a formula, so that a picture can be judged by eye. */

import type { Cells } from "../../src/data/cells";
import { listed } from "../../src/data/fixtures";
import type { Scale } from "../../src/data/scale";
import { FROZEN, MOVING, PRUNED, QUIET, REACTIVATED, STATE_BITS } from "../../src/data/states";
import { axisEnd } from "../../src/data/steps";
import { type Columns, columnsOf } from "../../src/draw/columns";

export const THRESHOLD = 1e-3;

/** The state byte of a channel at a record, and its relative delta. */
export type Cell = (channel: number, record: number) => [number, number];

/** The nearest value of the grid. */
const onGrid = (delta: number): number => (delta > 0 ? 2 ** (Math.round(16 * Math.log2(delta)) / 16) : delta);

/** Records at steps `first`, `first + 1`, … */
export function cellsOf(channels: number, records: number, cell: Cell, first = 0): Cells {
  const steps = Float64Array.from({ length: records }, (_, t) => first + t);
  const state = new Uint8Array(channels * records);
  const deltas = new Array<number>(channels * records);
  for (let c = 0, at = 0; c < channels; c++) {
    for (let t = 0; t < records; t++, at++) {
      const [byte, value] = cell(c, t);
      state[at] = byte;
      deltas[at] = onGrid(value);
    }
  }
  const rest = { pastSteps: steps, learningRates: new Float32Array(records), wallTimes: steps };
  const header = { threshold: THRESHOLD, events: [] } as unknown as Cells["header"];
  return { header, channels, records, steps, end: axisEnd(steps, steps), state, ...listed(deltas), ...rest };
}

export const columnsFrom = (channels: number, records: number, cell: Cell): Columns =>
  columnsOf(cellsOf(channels, records, cell));

export const inOrder = (cells: Cells): Uint32Array => Uint32Array.from({ length: cells.channels }, (_, c) => c);

export const steps = (count: number, width: number, from = 0): Scale => ({ from, to: from + count, width });

/** Calms down over the records, later channels earlier. */
const calm = (c: number, t: number): number => 0.5 * 10 ** (-t / 12 - c / 10);

/** One state for good. */
export const always =
  (state: number): Cell =>
  (c, t) => [state, (state & STATE_BITS) === MOVING ? calm(c, t) : 0];

/** Sixteen channels that go through all states in 40 records. */
export const life: Cell = (c, t) => {
  if (c % 4 === 3 && t >= 10 + c) return [PRUNED, 0];
  if (c % 4 === 2 && t >= 30 - c) return [FROZEN, 0];
  if (c % 8 === 1 && t >= 12 && t < 18) return [FROZEN, 0];
  if (c % 8 === 1 && t >= 18 && t < 26) return [REACTIVATED, calm(c, t - 10)];
  if (calm(c, t) < 2 * THRESHOLD) return [QUIET, THRESHOLD / 2];
  return [MOVING, calm(c, t)];
};
