/** What was recorded, exactly: figures, each made from one record of each layer, with the step that they are of. */

import { type Container, type Section, section, whole } from "../server/container";
import type { RecordsHeader } from "../server/types";
import { kept } from "./kept";
import { MOVING, NO_DATA, STATES } from "./states";
import { lastAtOrBefore } from "./steps";

/** Counts of channels at a record. */
export interface Figures {
  /** The step of the record; for several layers, that of the newest one. */
  step: number;
  /** Of the oldest, where layers lack a record at that step. */
  oldest: number;
  /** Channels by state code. */
  counts: number[];
  /** Channels that have data. */
  total: number;
  channels: number;
  violated: number;
  /** Mean relative delta of what moves, NaN where nothing does. */
  meanDelta: number;
  /** Pruned weights of the prunable ones; NaN where that isn't known. */
  pruned: number;
  prunable: number;
}

/** Records of a run that follow one another. */
export interface RecordBlock {
  run: string;
  threshold: number;
  steps: Float64Array;
  wallTimes: Float64Array;
  /** The highest, where groups of weights have different ones. */
  learningRates: Float32Array;
  severalRates?: boolean;
  /** The place of a layer in what follows. */
  rows: ReadonlyMap<string, number>;
  channels: readonly number[];
  prunable: readonly number[];
  /** [layer * records + record], steps since the layer's own record in force. */
  age: Section;
  /** [(layer * records + record) * STATES + state] */
  counts: Section;
  violated: Section;
  meanDelta: Float32Array;
  pruned: Section;
}

export function readBlock(container: Container<RecordsHeader>): RecordBlock {
  const { header } = container;
  return {
    run: header.run,
    threshold: header.threshold,
    steps: section(container, "steps", Float64Array),
    wallTimes: section(container, "wall_times", Float64Array),
    learningRates: section(container, "learning_rates", Float32Array),
    severalRates: header.several_rates,
    rows: new Map(header.layers.map((layer, row) => [layer, row])),
    channels: header.channels,
    prunable: header.prunable,
    age: whole(container, "age"),
    counts: whole(container, "counts"),
    violated: whole(container, "violated"),
    meanDelta: section(container, "mean_delta", Float32Array),
    pruned: whole(container, "pruned"),
  };
}

/** Figures of no channel. */
export const nothing = (step: number): Figures => ({
  step,
  oldest: step,
  counts: new Array<number>(STATES).fill(0),
  total: 0,
  channels: 0,
  violated: 0,
  meanDelta: Number.NaN,
  pruned: 0,
  prunable: 0,
});

/** Of some layers in a block: their rows, and the figures made last, which several places show. */
const rowsIn = kept((block: RecordBlock) =>
  kept((layers: readonly string[]) => ({
    rows: Int32Array.from(layers.flatMap((layer) => block.rows.get(layer) ?? [])),
    record: -1,
    figures: null as Figures | null,
  })),
);

/**
 * The figures of some layers together at a step: of each its newest record at or before it.
 *
 * @returns null before the block's first record, and where the run has none of the layers.
 */
export function figuresIn(block: RecordBlock, layers: readonly string[], step: number): Figures | null {
  const record = lastAtOrBefore(block.steps, step);
  if (record < 0) return null;
  const last = rowsIn(block)(layers);
  if (last.record !== record) {
    last.figures = together(block, last.rows, record);
    last.record = record;
  }
  return last.figures;
}

function together(block: RecordBlock, rows: Int32Array, record: number): Figures | null {
  const { steps, age, counts, channels, violated, meanDelta, pruned, prunable } = block;
  const sum = nothing(Number.NEGATIVE_INFINITY);
  sum.oldest = Number.POSITIVE_INFINITY;
  let moved = 0;
  let moving = 0;
  for (const row of rows) {
    const place = row * steps.length + record;
    for (let state = 0; state < STATES; state++) sum.counts[state] += counts[place * STATES + state];
    sum.channels += channels[row];
    sum.prunable += prunable[row];
    sum.pruned += pruned[place];
    if (counts[place * STATES + NO_DATA] === channels[row] && channels[row] > 0) continue;
    sum.step = Math.max(sum.step, steps[record] - age[place]);
    sum.oldest = Math.min(sum.oldest, steps[record] - age[place]);
    sum.violated += violated[place];
    const own = counts[place * STATES + MOVING];
    if (own > 0 && !Number.isNaN(meanDelta[place])) {
      moved += own * meanDelta[place];
      moving += own;
    }
  }
  if (sum.channels === 0 || sum.step < sum.oldest) return null;
  sum.total = sum.channels - sum.counts[NO_DATA];
  sum.meanDelta = moving > 0 ? moved / moving : Number.NaN;
  return sum;
}
