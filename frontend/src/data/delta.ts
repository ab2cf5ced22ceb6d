/** The scale of movement: relative deltas as colours. */

/** Colour steps of the movement scale. */
export const LEVELS = 256;

/** Where the movement scale ends. Training moves weights by about 1e-3 a step; from 0.1 on all is drawn alike. */
export function scaleTop(threshold: number): number {
  return Math.max(0.1, 10 * threshold);
}

const decades = { of: Number.NaN, span: 0 };

/** Place of a relative delta on the movement scale, 0 to 1: logarithmic from the threshold to the top. */
export function placeOf(delta: number, threshold: number): number {
  if (!(delta > threshold)) return 0;
  // Strips ask for each of their pixels, always with the same threshold.
  if (decades.of !== threshold)
    Object.assign(decades, { of: threshold, span: Math.log(scaleTop(threshold) / threshold) });
  return Math.min(1, Math.log(delta / threshold) / decades.span);
}

/** The colour of a relative delta, 0 to LEVELS - 1. */
export function levelOf(delta: number, threshold: number): number {
  return Math.round(placeOf(delta, threshold) * (LEVELS - 1));
}

const tables = new WeakMap<Float64Array, Map<number, Uint8Array>>();

/** levelOf for each value of a list; of each list the same table as long as there are few thresholds. */
export function levelTable(values: Float64Array, threshold: number): Uint8Array {
  const known = tables.get(values) ?? new Map<number, Uint8Array>();
  tables.set(values, known);
  const table = known.get(threshold) ?? Uint8Array.from(values, (value) => levelOf(value, threshold));
  if (known.size > 8) known.clear();
  known.set(threshold, table);
  return table;
}
