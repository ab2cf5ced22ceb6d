/** Overlap of two runs' masks: by layer and step, and what there is to say of a pair. */

import { type Container, section } from "../wire/container";
import type { OverlapAnswer, OverlapLayersHeader, OverlapPair, OverlapRun } from "../wire/types";
import { formatCount } from "./format";
import type { MaskKind, Unit } from "./hash";
import { axisEnd, columnAt } from "./series";

/** Overlap of two runs by layer and column of steps. */
export interface Laps {
  header: OverlapLayersHeader;
  starts: Float64Array;
  ends: Float64Array;
  end: number;
  /** Place of a layer in the rows below. */
  rows: ReadonlyMap<string, number>;
  /** [layer * columns + column], NaN where one of the runs has no record, or where they can't be compared. */
  overlap: Float32Array;
  chance: Float32Array;
  kept: Float64Array;
  otherKept: Float64Array;
  both: Float64Array;
}

export function readLaps(container: Container<OverlapLayersHeader>): Laps {
  const { header } = container;
  const starts = section(container, "first_steps", Float64Array);
  const ends = section(container, "steps", Float64Array);
  return {
    header,
    starts,
    ends,
    end: axisEnd(starts, ends),
    rows: new Map(header.layers.map((layer, l) => [layer, l])),
    overlap: section(container, "overlap", Float32Array),
    chance: section(container, "chance", Float32Array),
    kept: section(container, "kept", Float64Array),
    otherKept: section(container, "other_kept", Float64Array),
    both: section(container, "both", Float64Array),
  };
}

export interface Lap {
  overlap: number;
  chance: number;
  /** What the first run keeps of the elements, the second, and both. */
  kept: number;
  otherKept: number;
  both: number;
  elements: number;
  firstStep: number;
  lastStep: number;
}

/** The numbers of a layer at a step, or null where it isn't compared or nothing is recorded. */
export function lapAt(laps: Laps, layer: string, step: number): Lap | null {
  const row = laps.rows.get(layer);
  const column = columnAt(laps, step);
  if (row === undefined || column < 0) return null;
  const at = row * laps.starts.length + column;
  return {
    overlap: laps.overlap[at],
    chance: laps.chance[at],
    kept: laps.kept[at],
    otherKept: laps.otherKept[at],
    both: laps.both[at],
    elements: laps.header.elements[row],
    firstStep: laps.starts[column],
    lastStep: laps.ends[column],
  };
}

/** A row of one of the sections, as shares of the layer's elements. */
export function keptShares(laps: Laps, row: number, which: "kept" | "otherKept"): Float64Array {
  const k = laps.starts.length;
  return laps[which].subarray(row * k, (row + 1) * k).map((count) => count / laps.header.elements[row]);
}

/** 0.41; it reads 0.00 and 1.00 only where it is exactly that. */
export function formatOverlap(value: number | null): string {
  if (value === null || Number.isNaN(value)) return "–";
  if (value > 0 && value < 0.005) return "<.01";
  return value < 1 && value >= 0.995 ? ">.99" : value.toFixed(2);
}

/** The pair of two runs in an answer, whichever comes first there. */
export function pairOf(answer: OverlapAnswer, first: string, second: string): OverlapPair | null {
  const [i, j] = [first, second].map((name) => answer.runs.findIndex((run) => run.name === name));
  return answer.pairs.find((pair) => (pair.a === i && pair.b === j) || (pair.a === j && pair.b === i)) ?? null;
}

/** What is counted: "kept weights". */
export const setText = (unit: Unit, mask: MaskKind): string =>
  `${mask === "kept" ? (unit === "channels" ? "surviving" : "kept") : "trainable"} ${unit}`;

/** Why two runs can't be compared. */
export const REASONS: Record<NonNullable<OverlapPair["reason"]>, string> = {
  origin: "other initial weights",
  layers: "no layer in common",
  unknown: "masks not known",
  "no record": "no record at this step",
};

/** "0.41, by chance 0.29", or why there is no such number. */
export const numbersText = (pair: OverlapPair): string =>
  pair.reason ? REASONS[pair.reason] : `${formatOverlap(pair.overlap)}, by chance ${formatOverlap(pair.chance)}`;

/** What the numbers of a pair mean, in sentences. */
export function pairTexts(pair: OverlapPair, runs: readonly OverlapRun[], unit: Unit, mask: MaskKind): string[] {
  const [a, b] = [runs[pair.a], runs[pair.b]];
  if (pair.reason) {
    const lacking = [a, b].filter((run) => (pair.reason === "no record" ? run.step : run.kept) === null);
    const named = lacking.length > 0 ? ` (${lacking.map((run) => run.name).join(", ")})` : "";
    return [`Not comparable: ${REASONS[pair.reason]}${named}.`];
  }
  const what = setText(unit, mask);
  const texts = [`${formatCount(pair.intersection ?? 0)} of ${formatCount(pair.union ?? 0)} ${what} are in both.`];
  const whole = [a, b].filter((run) => run.kept === run.elements);
  const held = mask === "kept" ? "pruned" : "held";
  if (whole.length === 2) texts.push(`Nothing is ${held} in either: they overlap by all there is.`);
  else if (whole.length === 1) {
    const [full, part] = whole[0] === a ? [a, b] : [b, a];
    texts.push(`Nothing is ${held} in ${full.name}: the overlap is just the share that is left in ${part.name}.`);
  } else if (pair.union === 0) texts.push("Nothing is left in either: two empty sets overlap by 1.");
  if (pair.unmatched > 0) texts.push(`Layers without a counterpart of their shape: ${formatCount(pair.unmatched)}.`);
  return texts;
}

/** Records as CSV under their keys, as_the_server_writes_them. Texts are quoted where they must be; what is no number is left empty. */
export function toCsv(records: readonly object[]): string {
  const cell = (value: unknown) => {
    const text = value === null || Number.isNaN(value) ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = records.map((record) => Object.values(record));
  const head = Object.keys(records[0] ?? {}).map((key) =>
    key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
  );
  return [head, ...lines].map((line) => `${line.map(cell).join(",")}\r\n`).join("");
}
