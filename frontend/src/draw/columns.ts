/**
 * What is drawn: columns of steps, each of one record or of many, as shares for the eye. No number of the page is read from
 * them: only what draws may import this module, `scripts/layers.mjs` sees to it.
 */

import { type Cells, countsOf } from "../data/cells";
import { kept, keptByValue } from "../data/kept";
import { MOVING, NO_DATA, STATES, stateCode, VIOLATED } from "../data/states";
import { axisEnd, lastAtOrBefore } from "../data/steps";
import type { Measure } from "../data/urlstate";
import { type Container, numbers, type Section, section } from "../server/container";
import type { LaneFlag, LaneHeader, OverviewHeader } from "../server/types";

type Numbers = Float64Array | Float32Array | Uint32Array | Uint8Array;

export interface Columns {
  /** First step of each column, rising. */
  starts: Float64Array;
  /** Where the last column ends on the axis (exclusive). */
  end: number;
  /** [column * STATES + state], in parts of any whole. */
  shares: Numbers;
  /** `VIOLATED` if any record of the column is. */
  marks: Uint8Array;
  /** Mean relative delta of what moves, NaN where nothing does. */
  meanDelta: Numbers;
  /** Share of the prunable weights that is pruned; null where none is or that isn't known. */
  pruned: Numbers | null;
  channels: number;
  prunable: number;
}

/** The columns of a run, for what draws. */
export interface Drawn {
  threshold: number;
  starts: Float64Array;
  of(layers: readonly string[]): Columns | null;
  /** The first and the last step of the column that holds a step, for saying what is drawn there. */
  span(step: number): readonly [number, number] | null;
}

const MARK_VIOLATED = 1;

/** Marks as the states have them. */
const marksOf = (values: Uint8Array): Uint8Array => values.map((mark) => (mark & MARK_VIOLATED ? VIOLATED : 0));

export function readDrawn(container: Container<OverviewHeader>): Drawn {
  const { header } = container;
  const starts = section(container, "first_steps", Float64Array);
  const lasts = section(container, "steps", Float64Array);
  const end = axisEnd(starts, lasts);
  const k = starts.length;
  const sparse = container.sections.has("pruned");
  const read = (prefix: string, row: number, channels: number, prunable: number): Columns => {
    const part = <S extends Section>(name: string, Kind: new (length: number) => S, each = 1): S =>
      section(container, prefix + name, Kind).subarray(row * k * each, (row + 1) * k * each) as S;
    return {
      starts,
      end,
      shares: numbers(container, `${prefix}shares`, Float64Array, row * k * STATES, (row + 1) * k * STATES),
      marks: marksOf(part("marks", Uint8Array)),
      meanDelta: part("mean_delta", Float32Array),
      pruned: sparse ? part("pruned", Float32Array) : null,
      channels,
      prunable,
    };
  };
  const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0);
  const rows = new Map(header.layers.map((layer, row) => [layer, row]));
  // 300 layers of 20 runs are many objects, few of which are ever drawn.
  const layerColumns = keptByValue((row: number) => read("", row, header.channels[row], header.prunable[row]));
  let total: Columns | null = null;
  const sums = kept((layers: readonly string[]): { sum: Columns | null } => {
    const own = layers.flatMap((layer) => rows.get(layer) ?? []);
    if (own.length === header.layers.length) {
      total ??= read("total_", 0, sum(header.channels), sum(header.prunable));
      return { sum: total };
    }
    return { sum: own.length > 0 ? addColumns(own.map(layerColumns)) : null };
  });
  return {
    threshold: header.threshold,
    starts,
    of: (layers) => sums(layers).sum,
    span(step) {
      const column = lastAtOrBefore(starts, step);
      return column < 0 ? null : [starts[column], lasts[column]];
    },
  };
}

/** A run as one lane. */
export interface Lane {
  threshold: number;
  columns: Columns;
  /** Of each column that of its last record, NaN where unknown. */
  rates: Float32Array;
  /** Whether these are the highest of several. */
  several?: boolean;
  flags: readonly LaneFlag[];
}

export function readLane(container: Container<LaneHeader>): Lane {
  const { threshold, channels, prunable, flags } = container.header;
  const starts = section(container, "first_steps", Float64Array);
  const columns: Columns = {
    starts,
    end: axisEnd(starts, section(container, "steps", Float64Array)),
    shares: numbers(container, "shares", Float64Array),
    marks: marksOf(section(container, "marks", Uint8Array)),
    meanDelta: section(container, "mean_delta", Float32Array),
    pruned: container.sections.has("pruned") ? section(container, "pruned", Float32Array) : null,
    channels,
    prunable,
  };
  const rates = section(container, "learning_rates", Float32Array);
  return { threshold, columns, rates, several: container.header.several_rates, flags };
}

/** Columns of the same steps, added: shares and marks by channels, the mean delta by those that move. */
export function addColumns(parts: readonly Columns[]): Columns {
  const [first] = parts;
  if (parts.length === 1) return first;
  const k = first.starts.length;
  const prunable = parts.reduce((all, part) => all + part.prunable, 0);
  const sum = {
    ...first,
    shares: new Float64Array(k * STATES),
    marks: new Uint8Array(k),
    meanDelta: new Float64Array(k),
    pruned: first.pruned && new Float64Array(k).fill(prunable > 0 ? 0 : Number.NaN),
    channels: parts.reduce((all, part) => all + part.channels, 0),
    prunable,
  };
  const weights = new Float64Array(k);
  for (const part of parts) {
    for (let i = 0; i < k * STATES; i++) sum.shares[i] += part.channels * part.shares[i];
    for (let j = 0; j < k; j++) {
      sum.marks[j] |= part.marks[j];
      if (sum.pruned && part.pruned && part.prunable > 0) {
        sum.pruned[j] += (part.pruned[j] * part.prunable) / sum.prunable;
      }
      const moving = part.channels * part.shares[j * STATES + MOVING];
      if (!(moving > 0) || Number.isNaN(part.meanDelta[j])) continue;
      sum.meanDelta[j] += moving * part.meanDelta[j];
      weights[j] += moving;
    }
  }
  for (let j = 0; j < k; j++) sum.meanDelta[j] = weights[j] > 0 ? sum.meanDelta[j] / weights[j] : Number.NaN;
  return sum;
}

/** The records of a layer, a column each. */
export function columnsOf(cells: Cells): Columns {
  const { counts, violated, meanDelta } = countsOf(cells);
  const marks = Uint8Array.from(violated, (count) => (count > 0 ? VIOLATED : 0));
  const { steps: starts, end, channels } = cells;
  return { starts, end, shares: counts, marks, meanDelta, pruned: null, channels, prunable: 0 };
}

/** A measure of the columns [from, to), 0 to 1 or a mean relative delta, for a tint. NaN where there is nothing to measure. */
export function tintOf(columns: Columns, from: number, to: number, which: Measure): number {
  const state = which === "delta" ? MOVING : stateCode(which);
  const sum = { known: 0, state: 0, violated: 0, moving: 0, moved: 0, pruned: 0 };
  for (let j = from; j < to; j++) {
    for (let s = NO_DATA + 1; s < STATES; s++) sum.known += columns.shares[j * STATES + s];
    sum.state += columns.shares[j * STATES + state];
    if (columns.marks[j] & VIOLATED) sum.violated++;
    sum.pruned += columns.pruned?.[j] ?? Number.NaN;
    const moving = columns.shares[j * STATES + MOVING];
    if (!(moving > 0) || !(columns.meanDelta[j] >= 0)) continue;
    sum.moved += moving * columns.meanDelta[j];
    sum.moving += moving;
  }
  if (which === "sparsity") return sum.pruned / (to - from);
  if (which === "delta") return sum.moving > 0 ? sum.moved / sum.moving : Number.NaN;
  if (sum.known === 0) return Number.NaN;
  return which === "violated" ? sum.violated / (to - from) : sum.state / sum.known;
}
