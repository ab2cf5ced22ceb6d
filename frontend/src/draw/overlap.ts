/** Overlap or kept share of layers over steps: a row a layer, its colour the value. */

import { LEVELS } from "../model/delta";
import { pixelColumns, type Scale } from "../model/scale";
import { NO_DATA } from "../model/states";
import { blend, type Pixels, type Theme } from "./palette";
import { type Box, type Raster, statePixel } from "./raster";

/** The colour of a value from 0 to 1, and the one of black and white that is read on it. */
export function overlapStyle(theme: Theme, value: number): { background: string; color: string } {
  const background = blend(theme.overlap, value);
  const [r, g, b] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(background.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  // Above this luminance black has more contrast than white.
  return { background, color: 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.1791 ? "#000000" : "#ffffff" };
}

/** Draws values over columns of steps into a box. Of columns under one pixel the last that is known counts; dotted where none is. */
export function drawValues(
  raster: Raster,
  box: Box,
  values: ArrayLike<number> | null,
  columns: { starts: Float64Array; end: number },
  scale: Scale,
  pixels: Pixels,
): void {
  const { from, to } = pixelColumns(columns.starts, columns.end, { ...scale, width: box.width });
  for (let dx = 0; dx < box.width; dx++) {
    let value = Number.NaN;
    for (let j = to[dx] - 1; values && j >= 0 && j >= from[dx] && Number.isNaN(value); j--) value = values[j];
    const x = box.x + dx;
    for (let y = box.y; y < box.y + box.height; y++) {
      raster.data[y * raster.width + x] = Number.isNaN(value)
        ? statePixel(pixels, NO_DATA, x, y, raster.ratio)
        : pixels.overlap[Math.round(value * (LEVELS - 1))];
    }
  }
}
