/** One layer of one run: state and delta, channel × record. */

import { type Container, section } from "../wire/container";
import type { LayerHeader } from "../wire/types";
import { cappedTable } from "./delta";
import { axisEnd, lastAtOrBefore, type Series } from "./series";
import { FROZEN, MOVING, NONFINITE, PRUNED, REACTIVATED, STATE_BITS, STATES, VIOLATED } from "./states";

export interface Cells {
  header: LayerHeader;
  channels: number;
  records: number;
  steps: Float64Array;
  pastSteps: Float64Array;
  learningRates: Float32Array;
  wallTimes: Float64Array;
  end: number;
  /** [channel * records + record] */
  state: Uint8Array;
  /** Relative delta as codes, same layout. */
  delta: Int16Array;
}

export function readCells(container: Container<LayerHeader>): Cells {
  const steps = section(container, "steps", Float64Array);
  const { header } = container;
  return {
    header,
    channels: header.channels,
    records: steps.length,
    steps,
    pastSteps: section(container, "past_steps", Float64Array),
    learningRates: section(container, "learning_rates", Float32Array),
    wallTimes: section(container, "wall_times", Float64Array),
    end: axisEnd(steps, steps),
    state: section(container, "state", Uint8Array),
    delta: section(container, "delta", Int16Array),
  };
}

/** The strip of a layer, one column a record. */
export function seriesOf(cells: Cells): Series {
  const { records, channels } = cells;
  const series: Series = {
    starts: cells.steps,
    ends: cells.steps,
    end: cells.end,
    counts: new Uint32Array(records * STATES),
    violated: new Uint32Array(records),
    nonfinite: new Uint32Array(records),
    meanDelta: new Float64Array(records),
    channels,
    pruned: null,
    prunable: 0,
  };
  const capped = cappedTable();
  for (let c = 0, at = 0; c < channels; c++) {
    for (let t = 0; t < records; t++, at++) {
      const byte = cells.state[at];
      const state = byte & STATE_BITS;
      series.counts[t * STATES + state]++;
      if (byte & VIOLATED) series.violated[t]++;
      if (byte & NONFINITE) series.nonfinite[t]++;
      if (state === MOVING) series.meanDelta[t] += capped[cells.delta[at] + 32768];
    }
  }
  for (let t = 0; t < records; t++) series.meanDelta[t] /= series.counts[t * STATES + MOVING] || Number.NaN;
  return series;
}

export interface Summary {
  /** State at the last record. */
  final: Uint8Array;
  /** Index of the last record that was moving or reactivated, or moved although it was held; -1 for none. */
  lastMoved: Int32Array;
  /** Index of the first record that was frozen or pruned; `records` for none. */
  firstHeld: Int32Array;
  /** Delta code at the last record. */
  finalDelta: Int16Array;
  /** Index of the first violated record; -1 for none. */
  firstViolated: Int32Array;
}

/** What sorting and reading need to know about each channel. */
export function summarise(cells: Cells): Summary {
  const { records, channels, state, delta } = cells;
  const summary: Summary = {
    final: new Uint8Array(channels),
    lastMoved: new Int32Array(channels).fill(-1),
    firstHeld: new Int32Array(channels).fill(records),
    finalDelta: new Int16Array(channels),
    firstViolated: new Int32Array(channels).fill(-1),
  };
  if (records === 0) return summary;
  for (let c = 0; c < channels; c++) {
    const row = c * records;
    summary.final[c] = state[row + records - 1] & STATE_BITS;
    summary.finalDelta[c] = delta[row + records - 1];
    for (let t = records - 1; t >= 0; t--) {
      const byte = state[row + t];
      const code = byte & STATE_BITS;
      if (code === MOVING || code === REACTIVATED || byte & VIOLATED) {
        summary.lastMoved[c] = t;
        break;
      }
    }
    for (let t = 0; t < records; t++) {
      const code = state[row + t] & STATE_BITS;
      if (code === FROZEN || code === PRUNED) {
        summary.firstHeld[c] = t;
        break;
      }
    }
    for (let t = 0; t < records; t++) {
      if (state[row + t] & VIOLATED) {
        summary.firstViolated[c] = t;
        break;
      }
    }
  }
  return summary;
}

/** The record that is in force at a step, or -1. */
export const recordAt = (cells: Cells, step: number): number =>
  step >= cells.end ? -1 : lastAtOrBefore(cells.steps, step);
