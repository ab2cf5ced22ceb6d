/** One layer of one run: state and delta, channel × record, and what happened to it. */

import { type Container, numbers, type Places, section } from "../server/container";
import type { LayerEvent, LayerHeader } from "../server/types";
import { formatCount, formatFineShare } from "./format";
import { kept } from "./kept";
import { type Figures, nothing } from "./record";
import { FOLLOWING, FROZEN, MOVING, NO_DATA, PRUNED, REACTIVATED, STATE_BITS, STATES, VIOLATED } from "./states";
import { axisEnd, lastAtOrBefore } from "./steps";

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
  /** The place of the relative delta in `values`, same layout. */
  delta: Places;
  /** Relative deltas, increasing: 0 first, NaN last. */
  values: Float64Array;
}

/** Stretches that are shorter are filled cell by cell: a call takes as long. */
const SHORT = 32;

/** The states of all cells from stretches of equal ones. */
function spread(states: Uint8Array, lengths: Uint32Array, cells: number): Uint8Array {
  const all = new Uint8Array(cells);
  for (let i = 0, at = 0; i < states.length; i++) {
    const end = at + lengths[i];
    if (lengths[i] < SHORT) while (at < end) all[at++] = states[i];
    else all.fill(states[i], at, end);
    at = end;
  }
  return all;
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
    state: spread(
      section(container, "state", Uint8Array),
      numbers(container, "state_lengths", Uint32Array),
      header.channels * steps.length,
    ),
    delta: section<Places>(container, "delta", Uint8Array, Uint16Array),
    values: section(container, "delta_values", Float64Array),
  };
}

const joined = <A extends Float64Array | Float32Array>(first: A, second: A): A => {
  const all = new (first.constructor as new (length: number) => A)(first.length + second.length);
  all.set(first);
  all.set(second, first.length);
  return all;
};

/**
 * The cells with the columns that follow.
 *
 * @param cells what the page has.
 * @param tail the answer since its last step.
 * @returns null where the earlier columns no longer stand: after a restart, a finding about the past, or thinning. The
 * same object where nothing is new.
 */
export function joinCells(cells: Cells, tail: Cells): Cells | null {
  const { header } = tail;
  if (header.before === undefined || header.before !== cells.header.digest) return null;
  if (tail.channels !== cells.channels || header.variable !== cells.header.variable) return null;
  const aside = ({ header: { events, account, past } }: Cells) => JSON.stringify([events, account, past]);
  if (tail.records === 0 && aside(tail) === aside(cells)) return cells;
  const steps = joined(cells.steps, tail.steps);
  const records = steps.length;
  const state = new Uint8Array(cells.channels * records);
  const values = Float64Array.from(new Set([...cells.values, ...tail.values])).sort();
  const delta = new (values.length <= 2 ** 8 ? Uint8Array : Uint16Array)(cells.channels * records);
  const placeOf = new Map(Array.from(values, (value, place) => [value, place]));
  for (const part of [cells, tail]) {
    const placesOfPart = Uint16Array.from(part.values, (value) => placeOf.get(value)!);
    const from = part === tail ? cells.records : 0;
    for (let c = 0; c < cells.channels; c++) {
      const row = c * part.records;
      const to = c * records + from;
      state.set(part.state.subarray(row, row + part.records), to);
      for (let t = 0; t < part.records; t++) delta[to + t] = placesOfPart[part.delta[row + t]];
    }
  }
  return {
    ...tail,
    records,
    steps,
    pastSteps: joined(cells.pastSteps, tail.pastSteps),
    wallTimes: joined(cells.wallTimes, tail.wallTimes),
    learningRates: joined(cells.learningRates, tail.learningRates),
    end: axisEnd(steps, steps),
    state,
    delta,
    values,
  };
}

/** The relative delta of a cell. */
export const deltaAt = ({ values, delta }: Cells, at: number): number => values[delta[at]];

export interface Summary {
  /** State at the last record. */
  final: Uint8Array;
  /** Index of the last record that was moving or reactivated, or moved although it was held; -1 for none. */
  lastMoved: Int32Array;
  /** Index of the first record that was frozen or pruned; `records` for none. */
  firstHeld: Int32Array;
  /** Place of the relative delta at the last record. */
  finalDelta: Uint16Array;
  /** Index of the first violated record; -1 for none. */
  firstViolated: Int32Array;
}

/** Four bits of a byte: the state, violated. */
const KINDS = 16;
const kindOf = (byte: number) => (byte & STATE_BITS) | ((byte >> 4) & (KINDS - 1 - STATE_BITS));
const VIOLATED_KIND = kindOf(VIOLATED);

/** Channels in each state, record by record. */
export interface Counts {
  /** [record * STATES + state] */
  counts: Uint32Array;
  violated: Uint32Array;
  /** Mean relative delta of the moving channels, NaN where none moves. */
  meanDelta: Float64Array;
}

/**
 * How many cells of each record are of each kind, the sum of what moves, and the summary: all in one pass, over stretches
 * of equal cells, as states last.
 *
 * @param changes by kind and record: how many more cells are of the kind than in the record before.
 */
function count({ records, channels, state, delta, values }: Cells, changes: Int32Array, moved: Float64Array): Summary {
  const summary: Summary = {
    final: new Uint8Array(channels),
    lastMoved: new Int32Array(channels).fill(-1),
    firstHeld: new Int32Array(channels).fill(records),
    finalDelta: new Uint16Array(channels),
    firstViolated: new Int32Array(channels).fill(-1),
  };
  const capped = values.map((value) => Math.min(value, 1) || 0);
  for (let c = 0, row = 0; c < channels && records > 0; c++, row += records) {
    for (let from = 0, to = 0; from < records; from = to) {
      const byte = state[row + from];
      const code = byte & STATE_BITS;
      while (to < records && state[row + to] === byte) to++;
      const kind = kindOf(byte) * (records + 1);
      changes[kind + from]++;
      changes[kind + to]--;
      if (code === MOVING) for (let t = from; t < to; t++) moved[t] += capped[delta[row + t]];
      if (code === MOVING || code === REACTIVATED || byte & VIOLATED) summary.lastMoved[c] = to - 1;
      else if (code === FOLLOWING)
        for (let t = from; t < to; t++) if (capped[delta[row + t]] > 0) summary.lastMoved[c] = t;
      if ((code === FROZEN || code === PRUNED) && summary.firstHeld[c] > from) summary.firstHeld[c] = from;
      if (byte & VIOLATED && summary.firstViolated[c] < 0) summary.firstViolated[c] = from;
    }
    summary.final[c] = state[row + records - 1] & STATE_BITS;
    summary.finalDelta[c] = delta[row + records - 1];
  }
  return summary;
}

function scan(cells: Cells) {
  const { records } = cells;
  const changes = new Int32Array(KINDS * (records + 1));
  const meanDelta = new Float64Array(records);
  const summary = count(cells, changes, meanDelta);
  const counts = new Uint32Array(records * STATES);
  const violated = new Uint32Array(records);
  for (let kind = 0; kind < KINDS; kind++) {
    for (let t = 0, now = 0; t < records; t++) {
      now += changes[kind * (records + 1) + t];
      counts[t * STATES + (kind & STATE_BITS)] += now;
      if (kind & VIOLATED_KIND) violated[t] += now;
    }
  }
  for (let t = 0; t < records; t++) meanDelta[t] /= counts[t * STATES + MOVING] || Number.NaN;
  return { counts: { counts, violated, meanDelta }, summary };
}

const scanOf = kept(scan);

/** How many channels are in each state at each record; kept per cells. */
export const countsOf = (cells: Cells): Counts => scanOf(cells).counts;

/** What sorting and reading need to know about each channel; kept per cells. */
export const summarise = (cells: Cells): Summary => scanOf(cells).summary;

/** The record in force at a step: the newest at or before it; -1 before the first. */
export const recordAt = (cells: Cells, step: number): number => lastAtOrBefore(cells.steps, step);

/** What a channel did by a record. */
export interface Cell {
  record: number;
  state: number;
  violated: boolean;
  delta: number;
}

/** A channel at the record in force at a step; null before the first one, and where there is no such channel. */
/** Steps from the past of the record in force at a step to it; null where there is none. */
export function lagAt(cells: Cells, step: number): number | null {
  const record = recordAt(cells, step);
  const lag = record < 0 ? 0 : cells.steps[record] - cells.pastSteps[record];
  return lag > 0 ? lag : null;
}

export function cellAt(cells: Cells, channel: number, step: number): Cell | null {
  const record = recordAt(cells, step);
  if (record < 0 || channel >= cells.channels) return null;
  const place = channel * cells.records + record;
  const byte = cells.state[place];
  return {
    record,
    state: byte & STATE_BITS,
    violated: (byte & VIOLATED) > 0,
    delta: deltaAt(cells, place),
  };
}

/** The figures of the record in force at a step, null before the first one. Weights aren't counted here. */
export function figuresAt(cells: Cells, step: number): Figures | null {
  const record = recordAt(cells, step);
  if (record < 0) return null;
  const { counts, violated, meanDelta } = countsOf(cells);
  const own = Array.from(counts.subarray(record * STATES, (record + 1) * STATES));
  return {
    ...nothing(cells.steps[record]),
    counts: own,
    total: cells.channels - own[NO_DATA],
    channels: cells.channels,
    violated: violated[record],
    meanDelta: meanDelta[record],
    pruned: Number.NaN,
  };
}

/** "lr ÷2" for a rate that fell to a half, "90.6 % remaining" and "frozen: 32" for a mask. */
export function flagText(event: LayerEvent): string {
  if (event.kind === "learning_rate") return `lr ${rateText(event.from, event.to)}`;
  if (event.kind === "restart") return "resumed";
  if ("through" in event) {
    return `${formatFineShare(event.through, event.elements)} ${event.kind === "kept" ? "remaining" : "trainable"}`;
  }
  const { frozen, pruned, channels } = event;
  const parts = [["frozen", frozen] as const, ["pruned", pruned] as const].filter(([, count]) => count > 0);
  const words = parts.map(([word, count]) => (count === channels ? `all ${word}` : `${word}: ${formatCount(count)}`));
  return words.join(", ") || "all released";
}

/** Factors near a whole number as ÷n or ×n (a schedule rounds), else the new rate. */
function rateText(before: number, after: number): string {
  for (const [factor, sign] of [
    [before / after, "÷"],
    [after / before, "×"],
  ] as const) {
    const whole = Math.round(factor);
    if (whole >= 2 && whole <= 1000 && Math.abs(factor / whole - 1) < 0.05) return `${sign}${whole}`;
  }
  return `→ ${Number(after.toPrecision(3))}`;
}
