/** Overlap of two runs' masks: by layer and step, and a pair in words. */

import { type Container, section } from "../server/container";
import type { OverlapAnswer, OverlapLayersHeader, OverlapPair, OverlapRun } from "../server/types";
import { formatCount } from "./format";
import type { MaskKind, Unit } from "./urlstate";

/** Overlap of two runs by layer, of each its newest record at or before a step. */
export interface LayerOverlaps {
  header: OverlapLayersHeader;
  step: number;
  /** By layer. */
  layers: ReadonlyMap<string, Overlapped>;
}

export interface Overlapped {
  /** NaN where one of the runs has no record, or where they can't be compared. */
  overlap: number;
  chance: number;
  /** What the first run keeps of the elements, the second, and both. */
  kept: number;
  otherKept: number;
  both: number;
  elements: number;
}

export function readLayerOverlaps(container: Container<OverlapLayersHeader>): LayerOverlaps {
  const { header } = container;
  const layers = header.layers.map((layer, row): [string, Overlapped] => {
    const number = (name: string) => section(container, name, Float64Array)[row];
    const [overlap, chance, kept, otherKept] = ["overlap", "chance", "kept", "other_kept"].map(number);
    return [layer, { overlap, chance, kept, otherKept, both: number("both"), elements: header.elements[row] }];
  });
  return { header, step: section(container, "steps", Float64Array)[0], layers: new Map(layers) };
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

/** The pair of the chosen runs; who isn't chosen is the first that the other can be compared with, if there is one. */
export function choosePair<T extends { name: string }>(
  runs: readonly T[],
  first: string | null,
  second: string | null,
  comparable: (a: T, b: T) => boolean,
): [T, T] | null {
  if (runs.length < 2) return null;
  const following = (run: T) => [...runs, ...runs].slice(runs.indexOf(run) + 1, runs.indexOf(run) + runs.length);
  const partner = (run: T) => following(run).find((other) => comparable(run, other));
  const a = runs.find(({ name }) => name === first) ?? runs.find(partner) ?? runs[0];
  const b = runs.find((run) => run !== a && run.name === second);
  return [a, b ?? partner(a) ?? following(a)[0]];
}

/** The runs that differ most, of all pairs or of those with a run; null where no two are known to differ. */
export function mostDifferent({ pairs, runs }: OverlapAnswer, run: string | null): [string, string] | null {
  let least: OverlapPair | null = null;
  for (const pair of pairs) {
    const having = run === null || runs[pair.a].name === run || runs[pair.b].name === run;
    if (having && pair.overlap !== null && pair.overlap < (least?.overlap ?? 1)) least = pair;
  }
  if (!least) return null;
  const names: [string, string] = [runs[least.a].name, runs[least.b].name];
  return names[1] === run ? [names[1], names[0]] : names;
}

/** What is counted: "remaining weights". */
export const setText = (unit: Unit, mask: MaskKind): string => `${mask === "kept" ? "remaining" : "trainable"} ${unit}`;

/** The title of what each run keeps: "Weights remaining" */
export const shareTitle = (unit: Unit, mask: MaskKind): string =>
  `${unit === "channels" ? "Channels" : "Weights"} ${mask === "kept" ? "remaining" : "trainable"}`;

/** Why two runs can't be compared. */
export const REASONS: Record<NonNullable<OverlapPair["reason"]>, string> = {
  origin: "different initialization",
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
  if (whole.length === 2) texts.push(`Nothing is ${held} in either run, so the overlap is 1.00.`);
  else if (whole.length === 1) {
    const [full, part] = whole[0] === a ? [a, b] : [b, a];
    texts.push(`Nothing is ${held} in ${full.name}, so the overlap is just the share remaining in ${part.name}.`);
  } else if (pair.union === 0)
    texts.push("Nothing remains in either run: the overlap of two empty sets counts as 1.00.");
  if (pair.unmatched > 0) texts.push(`Layers without a counterpart of the same shape: ${formatCount(pair.unmatched)}.`);
  return texts;
}
