/** One chosen number of a strip, how far it is from the baseline's, and its spread over runs. */

import { formatNumber } from "./format";
import type { Figures } from "./record";
import { stateCode } from "./states";
import { MEASURE_TITLES, type Measure } from "./urlstate";

/** "still moving", inside a sentence */
export const measureName = (which: Measure): string =>
  MEASURE_TITLES[which].charAt(0).toLowerCase() + MEASURE_TITLES[which].slice(1);

/** The measure at a record: a share from 0 to 1, or the mean relative delta of what moves; NaN where there is none. */
export function measureOf(figures: Figures, which: Measure): number {
  if (which === "sparsity") return figures.prunable > 0 ? figures.pruned / figures.prunable : Number.NaN;
  if (which === "delta") return figures.meanDelta;
  if (figures.total === 0) return Number.NaN;
  return (which === "violated" ? figures.violated : figures.counts[stateCode(which)]) / figures.total;
}

/**
 * How far a measure is from the baseline's: a difference of shares, or of deltas in decades. NaN where one is missing.
 */
export function differenceOf(own: number, base: number, which: Measure): number {
  if (which !== "delta") return own - base;
  return own > 0 && base > 0 ? Math.log10(own / base) : Number.NaN;
}

/** Place of decades between deltas on the diverging scale, -1 to 1: it ends at ten times and at a tenth. */
export const placeOfDecades = (decades: number): number => Math.max(-1, Math.min(1, decades));

/**
 * Place of a difference on the diverging scale, -1 to 1. Shares use the square root: small differences stay visible.
 */
export function placeOfDifference(difference: number, which: Measure): number {
  if (which === "delta") return placeOfDecades(difference);
  return Math.sign(difference) * Math.sqrt(Math.abs(difference));
}

/** "×3.2", "÷100", "the same": how many times the baseline's. */
export function timesText(decades: number): string {
  if (Number.isNaN(decades)) return "–";
  const times = formatNumber(Number((10 ** Math.abs(decades)).toPrecision(2)));
  return times === "1" ? "the same" : `${decades > 0 ? "×" : "÷"}${times}`;
}

/** "+12.3 pp", "−0.4 pp", "the same" */
export function differenceText(difference: number, which: Measure): string {
  if (which === "delta") return timesText(difference);
  if (Number.isNaN(difference)) return "–";
  const points = 100 * Math.abs(difference);
  if (points === 0) return "the same";
  return `${difference > 0 ? "+" : "−"}${points < 0.1 ? "<0.1" : points.toFixed(1)} pp`;
}

/** Ends, quarters and middle of the diverging scale, as texts. */
export const differenceTicks = (which: Measure): [number, string][] =>
  which === "delta"
    ? [1 / 10, 1 / 3, 1, 3, 10].map((times) => {
        const decades = Math.log10(times);
        return [placeOfDecades(decades), times === 1 ? "same" : timesText(decades)];
      })
    : [-1, -0.25, 0, 0.25, 1].map((share) => [
        placeOfDifference(share, which),
        share === 0 ? "same" : `${share > 0 ? "+" : "−"}${100 * Math.abs(share)}`,
      ]);

/** Of runs that differ only in their seed. */
export interface Spread {
  mean: number;
  /** The sample standard deviation; NaN of a single value. */
  deviation: number;
  low: number;
  high: number;
  count: number;
}

/** The spread of the values that there are; null without any. */
export function spreadOf(values: readonly number[]): Spread | null {
  const present = values.filter((value) => !Number.isNaN(value));
  const count = present.length;
  if (count === 0) return null;
  const mean = present.reduce((sum, value) => sum + value, 0) / count;
  const squares = present.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return {
    mean,
    deviation: count > 1 ? Math.sqrt(squares / (count - 1)) : Number.NaN,
    low: Math.min(...present),
    high: Math.max(...present),
    count,
  };
}
