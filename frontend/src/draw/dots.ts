/** Rows of a dot plot: each a thin axis, the range of the values, a marker per run. */

import { drawMarker } from "./marker";
import type { Box, Raster } from "./raster";
import { coverBox, makeSprites, putSprite, type Sprite } from "./sprite";
import { pack, type Theme } from "./theme";

export interface Dot {
  /** 0 to 1; NaN isn't drawn. */
  position: number;
  color: string;
  shape: number;
  /** From the least to the largest value of a group, which the marker is the mean of. */
  range?: readonly [number, number];
}

export interface DotRow {
  y: number;
  /** Those of each row by the same runs. */
  dots: readonly Dot[];
}

const RADIUS = 4;
/** Of a marker and its halo, in CSS pixels. */
const HALF = 7;
/** Places within a device pixel that markers are drawn at. */
const PLACES = 8;

const sprites = new Map<string, Sprite[]>();

/** A marker at each place from left to right within a device pixel, and at one from its top. */
function spritesOf({ color, shape }: Dot, y: number, ratio: number, theme: Theme): Sprite[] {
  const key = `${color} ${shape} ${y} ${ratio} ${theme.dark}`;
  const half = Math.ceil(HALF * ratio);
  const made =
    sprites.get(key) ??
    makeSprites(PLACES, 2 * half, (context, x) => {
      context.translate(half + x / PLACES, half + y / PLACES);
      context.scale(ratio, ratio);
      drawMarker(context, 0, 0, RADIUS, shape, color, theme.panel);
    });
  if (sprites.size > 512) sprites.clear();
  sprites.set(key, made);
  return made;
}

/** Puts a marker at a place in device pixels. */
function putMarker(raster: Raster, dot: Dot, x: number, y: number, ratio: number, theme: Theme): void {
  const [px, py] = [Math.round(x * PLACES), Math.round(y * PLACES)];
  const sprite = spritesOf(dot, py & (PLACES - 1), ratio, theme)[px & (PLACES - 1)];
  const half = sprite.width / 2;
  putSprite(raster, sprite, Math.floor(px / PLACES) - half, Math.floor(py / PLACES) - half);
}

/** A thin axis with its two ends, and the range of the values. Bounds in CSS pixels, all lines at the row's height. */
function drawAxis(put: (box: Box, pixel: number) => void, x: number, width: number, row: DotRow, theme: Theme): void {
  const { y } = row;
  const line = pack(theme.line);
  put({ x, y, width, height: 1 }, line);
  for (const end of [x, x + width - 1]) put({ x: end, y: y - 4, width: 1, height: 9 }, line);
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { position } of row.dots) {
    if (Number.isNaN(position)) continue;
    low = Math.min(low, position);
    high = Math.max(high, position);
  }
  if (low < high) put({ x: x + low * width, y: y - 0.5, width: (high - low) * width, height: 2 }, pack(theme.range));
  for (const { range, color } of row.dots) {
    if (range)
      put({ x: x + range[0] * width, y: y - 1.5, width: (range[1] - range[0]) * width, height: 4 }, pack(color));
  }
}

/** The place of CSS pixels in the raster, as a canvas tells it: the ratio and an offset in device pixels. */
type Origin = Pick<DOMMatrix, "a" | "e" | "f">;

/** Paints row after row. */
export function* paintDots(
  raster: Raster,
  { a: ratio, e: left, f: top }: Origin,
  x: number,
  width: number,
  rows: Iterable<DotRow>,
  theme: Theme,
): Generator<void> {
  const put = (box: Box, pixel: number) =>
    coverBox(
      raster,
      { x: left + box.x * ratio, y: top + box.y * ratio, width: box.width * ratio, height: box.height * ratio },
      pixel,
    );
  for (const row of rows) {
    drawAxis(put, x, width, row, theme);
    for (const dot of row.dots) {
      if (Number.isNaN(dot.position)) continue;
      const place = x + dot.position * width;
      putMarker(raster, dot, left + place * ratio, top + (row.y + 0.5) * ratio, ratio, theme);
    }
    yield;
  }
}
