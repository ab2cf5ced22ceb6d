/** A canvas as one array of packed pixels. */

import { NO_DATA, PRUNED, REACTIVATED } from "../data/states";
import type { Pixels } from "./theme";

export interface Raster {
  data: Uint32Array;
  width: number;
  height: number;
  /** Device pixels per CSS pixel, rounded up: the pitch of hatch and lines. */
  ratio: number;
}

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** A box of a raster, to be painted. */
export interface Area extends Box {
  raster: Raster;
}

export const wholeOf = (raster: Raster): Area => ({ raster, x: 0, y: 0, width: raster.width, height: raster.height });

export function makeRaster(width: number, height: number, ratio: number): Raster {
  return { data: new Uint32Array(width * height), width, height, ratio: Math.max(1, Math.round(ratio)) };
}

/** Copies the columns of pixels from `lastX` on of an earlier picture to `x`, from `shift` pixels further down. */
export function carryColumns(
  raster: Raster,
  x: number,
  width: number,
  last: Raster,
  lastX: number,
  shift: number,
): void {
  const until = Math.min(raster.height, last.height - shift);
  for (let y = Math.max(0, -shift); y < until; y++) {
    const from = (y + shift) * last.width + lastX;
    raster.data.set(last.data.subarray(from, from + width), y * raster.width + x);
  }
}

/** Copies the rows of an earlier picture of the same width, from `shift` pixels further down. */
export function carryRows(raster: Raster, last: Raster, shift: number): void {
  const { width } = raster;
  const first = Math.max(0, -shift);
  const until = Math.min(raster.height, last.height - shift);
  if (first < until)
    raster.data.set(last.data.subarray((first + shift) * width, (until + shift) * width), first * width);
}

/** Puts the raster at the canvas's origin; transparent pixels replace what was there. */
export function putRaster(context: CanvasRenderingContext2D, raster: Raster, x = 0, y = 0): void {
  if (raster.width === 0 || raster.height === 0) return;
  const bytes = new Uint8ClampedArray(raster.data.buffer as ArrayBuffer);
  context.putImageData(new ImageData(bytes, raster.width, raster.height), x, y);
}

/** The pitch of the hatch of pruned weights, in pixels of the page. */
export const HATCH = 5;

/** The pixel of a state that isn't tinted: pruned is hatched, no data dotted, both by position. */
export function statePixel(pixels: Pixels, state: number, x: number, y: number, ratio: number): number {
  if (state === PRUNED) {
    return (x + y) % (HATCH * ratio) < ratio ? pixels.hatch : pixels.states[PRUNED];
  }
  if (state === REACTIVATED && pixels.lines && (x + (8 * ratio - 1) * y) % (8 * ratio) < ratio) return pixels.lines;
  if (state === NO_DATA) return x % (4 * ratio) < ratio && y % (4 * ratio) < ratio ? pixels.dot : 0;
  return pixels.states[state];
}

export function fillArea({ raster, x, y, width, height }: Area, pixel: number): void {
  const bottom = Math.min(raster.height, y + height);
  for (let row = Math.max(0, y); row < bottom; row++) {
    const begin = row * raster.width;
    raster.data.fill(pixel, begin + Math.max(0, x), begin + Math.min(raster.width, x + width));
  }
}
