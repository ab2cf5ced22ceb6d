/** Rows of a dot plot: each a thin axis, the range of the values, a marker per run. */

import { drawMarker } from "./marker";
import type { Box, Raster } from "./raster";
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

/**
 * A small picture that is drawn once, and laid over others pixel by pixel: faster than a path, or a canvas copied, for
 * each.
 */
export interface Sprite {
  /** Packed pixels, a row after the other. */
  data: Uint32Array;
  width: number;
}

/** What is drawn onto transparent squares of so many pixels, which are read together: that is what takes time. */
export function makeSprites(
  count: number,
  width: number,
  draw: (context: OffscreenCanvasRenderingContext2D, i: number) => void,
): Sprite[] {
  const canvas = new OffscreenCanvas(width, count * width);
  const context = canvas.getContext("2d", { willReadFrequently: true }) as OffscreenCanvasRenderingContext2D;
  for (let i = 0; i < count; i++) {
    context.setTransform(1, 0, 0, 1, 0, i * width);
    draw(context, i);
  }
  const all = new Uint32Array(context.getImageData(0, 0, width, count * width).data.buffer);
  return Array.from({ length: count }, (_, i) => ({ data: all.subarray(i * width ** 2, (i + 1) * width ** 2), width }));
}

/** One packed pixel over another (Porter and Duff 1984). */
export function over(pixel: number, below: number): number {
  const alpha = pixel >>> 24;
  if (alpha === 255 || below >>> 24 === 0) return pixel;
  const rest = ((below >>> 24) * (255 - alpha)) / 255;
  const sum = alpha + rest;
  if (sum === 0) return below;
  const red = ((pixel & 255) * alpha + (below & 255) * rest) / sum;
  const green = (((pixel >>> 8) & 255) * alpha + ((below >>> 8) & 255) * rest) / sum;
  const blue = (((pixel >>> 16) & 255) * alpha + ((below >>> 16) & 255) * rest) / sum;
  return ((red + 0.5) | ((green + 0.5) << 8) | ((blue + 0.5) << 16) | ((sum + 0.5) << 24)) >>> 0;
}

/** Lays a sprite over a raster, its corner at a pixel; what is outside is cut off. */
export function putSprite(raster: Raster, { data, width }: Sprite, left: number, top: number): void {
  const [from, until] = [Math.max(0, -left), Math.min(width, raster.width - left)];
  for (let y = Math.max(0, -top); y < width && y + top < raster.height; y++) {
    const row = (y + top) * raster.width + left;
    for (let x = from; x < until; x++) {
      const pixel = data[y * width + x];
      if (pixel >>> 24 > 0) raster.data[row + x] = over(pixel, raster.data[row + x]);
    }
  }
}

/** The part of a pixel between two places. */
const covered = (pixel: number, from: number, until: number): number =>
  Math.min(pixel + 1, until) - Math.max(pixel, from);

/** Lays a box with any bounds over a raster: pixels at its edge get the part of the colour that it covers of them. */
export function coverBox(raster: Raster, { x, y, width, height }: Box, pixel: number): void {
  const [right, bottom] = [Math.min(raster.width, x + width), Math.min(raster.height, y + height)];
  for (let j = Math.max(0, Math.floor(y)); j < bottom; j++) {
    for (let i = Math.max(0, Math.floor(x)); i < right; i++) {
      const alpha = Math.round((pixel >>> 24) * covered(i, x, right) * covered(j, y, bottom));
      const place = j * raster.width + i;
      if (alpha > 0) raster.data[place] = over(((pixel & 0xffffff) | (alpha << 24)) >>> 0, raster.data[place]);
    }
  }
}

const sprites = new Map<string, Sprite[]>();

/** A marker at each place from left to right within a device pixel, and at one from its top. */
function spritesOf({ color, shape }: Dot, y: number, ratio: number, theme: Theme): Sprite[] {
  const key = `${color} ${shape} ${y} ${ratio} ${theme.dark}`;
  const half = Math.ceil(HALF * ratio);
  const drawn =
    sprites.get(key) ??
    makeSprites(PLACES, 2 * half, (context, x) => {
      context.translate(half + x / PLACES, half + y / PLACES);
      context.scale(ratio, ratio);
      drawMarker(context, 0, 0, RADIUS, shape, color, theme.panel);
    });
  if (sprites.size > 512) sprites.clear();
  sprites.set(key, drawn);
  return drawn;
}

/** Puts a marker at a place in device pixels. */
function putMarker(raster: Raster, dot: Dot, x: number, y: number, ratio: number, theme: Theme): void {
  const [px, py] = [Math.round(x * PLACES), Math.round(y * PLACES)];
  const sprite = spritesOf(dot, py & (PLACES - 1), ratio, theme)[px & (PLACES - 1)];
  const half = sprite.width / 2;
  putSprite(raster, sprite, Math.floor(px / PLACES) - half, Math.floor(py / PLACES) - half);
}

/** Puts a box of CSS pixels. */
type Put = (box: Box, pixel: number) => void;

/** A thin axis with its two ends, and the range of the values, all at the row's height. */
function drawAxis(put: Put, x: number, width: number, { y, dots }: DotRow, theme: Theme): void {
  const line = pack(theme.line);
  put({ x, y, width, height: 1 }, line);
  for (const end of [x, x + width - 1]) put({ x: end, y: y - 4, width: 1, height: 9 }, line);
  const positions = dots.flatMap(({ position }) => (Number.isNaN(position) ? [] : position));
  const span = (low: number, high: number, height: number, color: string) =>
    put({ x: x + low * width, y: y - (height - 1) / 2, width: (high - low) * width, height }, pack(color));
  const [low, high] = [Math.min(...positions), Math.max(...positions)];
  if (low < high) span(low, high, 2, theme.range);
  for (const { range, color } of dots) if (range) span(...range, 4, color);
}

/** Paints row after row; bounds in CSS pixels, of which each is `ratio` pixels of the raster. */
export function* paintDots(
  raster: Raster,
  ratio: number,
  x: number,
  width: number,
  rows: Iterable<DotRow>,
  theme: Theme,
): Generator<void> {
  const put: Put = ({ x, y, width, height }, pixel) =>
    coverBox(raster, { x: x * ratio, y: y * ratio, width: width * ratio, height: height * ratio }, pixel);
  for (const row of rows) {
    drawAxis(put, x, width, row, theme);
    for (const dot of row.dots) {
      if (Number.isNaN(dot.position)) continue;
      putMarker(raster, dot, (x + dot.position * width) * ratio, (row.y + 0.5) * ratio, ratio, theme);
    }
    yield;
  }
}
