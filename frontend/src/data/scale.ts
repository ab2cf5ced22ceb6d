/** Steps to pixels and back, ticks at round numbers, and relative deltas to colours. */

import { kept } from "./kept";

export interface Scale {
  /** First step shown, and the end of the last one (exclusive). */
  from: number;
  to: number;
  width: number;
}

export const toPixel = (scale: Scale, step: number): number =>
  ((step - scale.from) / (scale.to - scale.from)) * scale.width;

export const toStep = (scale: Scale, pixel: number): number =>
  scale.from + (pixel / scale.width) * (scale.to - scale.from);

/** Round values in [from, to], about `count` of them and at whole steps. */
export function stepTicks(from: number, to: number, count: number): number[] {
  if (!(to > from) || count < 1) return [];
  const raw = (to - from) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const unit = raw / power < 1.4 ? power : raw / power < 3 ? 2 * power : raw / power < 7 ? 5 * power : 10 * power;
  const gap = Math.max(1, Math.round(unit));
  const ticks: number[] = [];
  // No -0.
  for (let tick = Math.ceil(from / gap) * gap + 0; tick <= to; tick += gap) ticks.push(tick);
  return ticks;
}

export interface PixelColumns {
  from: Int32Array;
  to: Int32Array;
}

const latest = new WeakMap<Float64Array, { end: number; scale: Scale; columns: PixelColumns }>();

/**
 * For each pixel of the scale the half-open range of columns under it; a pixel with no record repeats the one before.
 * The latest of each axis is kept: all strips of a run share it.
 */
export function pixelColumns(starts: Float64Array, end: number, scale: Scale): PixelColumns {
  const last = latest.get(starts);
  const { from, to, width } = last?.scale ?? scale;
  if (last?.end === end && from === scale.from && to === scale.to && width === scale.width) return last.columns;
  const columns = columnsUnder(starts, end, scale);
  latest.set(starts, { end, scale, columns });
  return columns;
}

function columnsUnder(starts: Float64Array, end: number, scale: Scale): PixelColumns {
  const width = Math.round(scale.width);
  const from = new Int32Array(width).fill(-1);
  const to = new Int32Array(width).fill(-1);
  let column = 0;
  for (let x = 0; x < width; x++) {
    const s0 = toStep(scale, x);
    const s1 = toStep(scale, x + 1);
    while (column < starts.length && starts[column] < s0) column++;
    let next = column;
    while (next < starts.length && starts[next] < s1) next++;
    if (next > column) {
      from[x] = column;
      to[x] = next;
    } else if (column > 0 && s0 < end) {
      from[x] = column - 1;
      to[x] = column;
    }
  }
  return { from, to };
}

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

const tablesOf = kept((_: Float64Array) => new Map<number, Uint8Array>());

/** levelOf for each value of a list; of each list the same table as long as there are few thresholds. */
export function levelTable(values: Float64Array, threshold: number): Uint8Array {
  const tables = tablesOf(values);
  const table = tables.get(threshold) ?? Uint8Array.from(values, (value) => levelOf(value, threshold));
  if (tables.size > 8) tables.clear();
  tables.set(threshold, table);
  return table;
}
