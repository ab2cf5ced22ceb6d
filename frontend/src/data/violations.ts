/** What the audit found: channels whose held weights changed, in words and in order. */

import type { Violation } from "../server/types";
import { formatCount, formatFineShare, formatNumber, plural } from "./format";

const CAUSES: Record<string, string> = {
  weight_decay: "weight decay",
  momentum: "momentum left in the optimizer's slots",
  ema: "the optimizer's moving average overwrote them",
  loaded: "weights were loaded or set",
  optimizer_replaced: "an optimizer that ignores the masks trains them",
  not_recompiled: "trainable was changed without a new compile",
  bypassed: "a train step traced before the masks were set bypasses them",
  constraint: "the weight's constraint changed them",
  gradient: "a gradient reached them: nothing enforces the masks",
  stale_gradient: "their optimizer got a gradient for them, left over or set by hand",
  another_model: "another model trains them",
  written: "something other than the optimizer wrote them (declare targets with follows=)",
  unmasked_update: "an update bypassed the masks",
  unknown: "unknown",
};

/** The likely cause in the words of the package; one that this page doesn't know yet is shown as it is. */
export const causeText = (cause: string): string =>
  Object.hasOwn(CAUSES, cause) ? CAUSES[cause] : cause.replaceAll("_", " ");

/** The largest distance of a weight from its frozen value. */
export const farText = ({ elements, largest }: Violation): string => {
  if (elements === null) return "–";
  return largest === null ? "not finite" : formatNumber(largest);
};

/** "3 of 9": how many of the held weights differ. */
export const elementsText = ({ elements, held }: Violation): string =>
  `${elements === null ? "–" : formatCount(elements)} of ${formatCount(held)}`;

/** "by up to 0.1, 3 of 9 held weights": how far, in a sentence. */
export const sizeText = (violation: Violation): string => {
  if (violation.elements === null) return `some of ${formatCount(violation.held)} held weights, by their fingerprint`;
  const far = violation.largest === null ? "to non-finite values" : `by up to ${farText(violation)}`;
  return `${far}, ${elementsText(violation)} held weights`;
};

/** The name of a variable below its layer: "kernel" of "block/conv2/kernel". */
export const shortVariable = ({ layer, variable }: Violation): string =>
  variable.startsWith(`${layer}/`) ? variable.slice(layer.length + 1) : variable;

const NAMES = new Intl.Collator("en", { numeric: true });

type Text = (entry: Violation) => string;

interface ColumnOfViolations {
  title: string;
  text: Text;
  compare(a: Violation, b: Violation): number;
  /** Of its cells; numbers have none. */
  style: "" | "text" | "text long" | "text cause";
}

const numeric = (title: string, of: (entry: Violation) => number, text: Text = (entry) => formatCount(of(entry))) =>
  ({ title, text, compare: (a, b) => of(a) - of(b) || 0, style: "" }) satisfies ColumnOfViolations;

const textual = (title: string, style: ColumnOfViolations["style"], text: Text) =>
  ({ title, text, compare: (a, b) => NAMES.compare(text(a), text(b)), style }) satisfies ColumnOfViolations;

/** The columns of the list. */
export const COLUMNS = {
  first: numeric("First step", (entry) => entry.first_step),
  last: numeric("Last step", (entry) => entry.last_step),
  layer: textual("Layer", "text long", (entry) => entry.layer),
  variable: textual("Variable", "text long", shortVariable),
  channel: numeric("Channel", (entry) => entry.channel),
  largest: numeric("Changed by up to", (entry) => (entry.elements === null ? 0 : (entry.largest ?? Infinity)), farText),
  elements: numeric("Weights changed", (entry) => entry.elements ?? 0, elementsText),
  cause: textual("Likely cause", "text cause", (entry) => causeText(entry.cause)),
};
export type Column = keyof typeof COLUMNS;
export const COLUMN_NAMES = Object.keys(COLUMNS) as Column[];

/** A sorted copy; what is equal keeps the server's order, which is by first step, layer and channel. */
export function sortViolations(list: readonly Violation[], by: Column, descending: boolean): Violation[] {
  const { compare } = COLUMNS[by];
  return [...list].sort(descending ? (a, b) => compare(b, a) : compare);
}

/** So many causes are named in the summary. */
const NAMED = 3;

/** Channels of layers: one counts once, however many of its variables changed and however often. */
const channelsOf = (list: readonly Violation[]): number =>
  new Set(list.map((entry) => `${entry.layer} ${entry.channel}`)).size;

/**
 * "64 channels of 2 layers changed while frozen or pruned, first at step 130. Likely causes: 60 × weight decay, 4 ×
 * unknown."
 */
export function summaryText(list: readonly Violation[]): string {
  const channels = channelsOf(list);
  const layers = new Set(list.map((entry) => entry.layer)).size;
  const first = list.reduce((least, entry) => Math.min(least, entry.first_step), Infinity);
  const causes = [...new Set(list.map(({ cause }) => cause))];
  const ranked = causes
    .map((cause) => [cause, channelsOf(list.filter((entry) => entry.cause === cause))] as const)
    .sort((a, b) => b[1] - a[1]);
  const others = ranked.splice(NAMED).reduce((sum, [, count]) => sum + count, 0);
  const words = ranked.map(([cause, count]) =>
    ranked.length > 1 ? `${formatCount(count)} × ${causeText(cause)}` : causeText(cause),
  );
  if (others > 0) words.push(`${formatCount(others)} × others`);
  return (
    `${plural(channels, "channel")} of ${plural(layers, "layer")} changed while frozen or pruned, first at step ${formatCount(first)}. ` +
    `Likely ${ranked.length > 1 ? "causes" : "cause"}: ${words.join(", ")}.`
  );
}

export interface LayerAudit {
  /** Violated channels of the layer: one counts once, however many of its variables changed. */
  channels: number;
  /** The first violation. */
  first: Violation;
}

/** The list by layer; within a layer the first entry is the earliest. */
export function byLayer(list: readonly Violation[]): Map<string, LayerAudit> {
  const audits = new Map<string, LayerAudit>();
  const seen = new Set<string>();
  for (const entry of list) {
    const { channels, first } = audits.get(entry.layer) ?? { channels: 0, first: entry };
    const key = `${entry.layer} ${entry.channel}`;
    audits.set(entry.layer, { channels: channels + Number(!seen.has(key)), first });
    seen.add(key);
  }
  return audits;
}

/** What the audit found in some layers together; null where that is nothing. */
export function auditOf(audits: ReadonlyMap<string, LayerAudit>, layers: readonly string[]): LayerAudit | null {
  const parts = layers.flatMap((layer) => audits.get(layer) ?? []);
  if (parts.length === 0) return null;
  return parts.reduce((a, b) => ({
    channels: a.channels + b.channels,
    first: b.first.first_step < a.first.first_step ? b.first : a.first,
  }));
}

/** Pruned weights of all that can be pruned: "80.0%"; null where that isn't known or nothing can be pruned. */
export const sparsityText = ({ pruned, prunable }: { pruned: number; prunable: number }): string | null =>
  prunable > 0 && pruned >= 0 ? formatFineShare(pruned, prunable) : null;
