/** Small pictures that are drawn once, and laid over others pixel by pixel: faster than a path, or a canvas copied, for each. */

import type { Box, Raster } from "./raster";

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

/** Lays a sprite over a raster, its corner at a pixel; what lies outside is cut off. */
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

/** The part of a pixel that lies between two places. */
const covered = (pixel: number, from: number, until: number): number =>
  Math.min(pixel + 1, until) - Math.max(pixel, from);

/** Lays a box with any bounds over a raster: pixels at its edge get the part of the colour that it covers of them. */
export function coverBox(raster: Raster, { x, y, width, height }: Box, pixel: number): void {
  const [right, bottom] = [Math.min(raster.width, x + width), Math.min(raster.height, y + height)];
  for (let j = Math.max(0, Math.floor(y)); j < bottom; j++) {
    for (let i = Math.max(0, Math.floor(x)); i < right; i++) {
      const alpha = Math.round((pixel >>> 24) * covered(i, x, right) * covered(j, y, bottom));
      const at = j * raster.width + i;
      if (alpha > 0) raster.data[at] = over(((pixel & 0xffffff) | (alpha << 24)) >>> 0, raster.data[at]);
    }
  }
}
