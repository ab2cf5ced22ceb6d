/** Changes of outputs over steps: a row of cells a place. Zoomed out, a pixel shows the largest value under it. */

import { type ChangeAxis, changePlace, type FunctionSeries, largestOf } from "../data/function";
import { LEVELS, pixelColumns, type Scale } from "../data/scale";
import { NO_DATA, SETTLED } from "../data/states";
import type { Change } from "../data/urlstate";
import { type Box, type Raster, statePixel } from "./raster";
import type { Pixels } from "./theme";

export interface ChangeStyle {
  change: Change;
  axis: ChangeAxis;
  pixels: Pixels;
}

/** Draws the row of one place into the box; where there is no value it is dotted. */
export function drawChanges(
  raster: Raster,
  box: Box,
  series: FunctionSeries,
  row: number | undefined,
  scale: Scale,
  { change, axis, pixels }: ChangeStyle,
): void {
  const columns = pixelColumns(series.steps, series.end, { ...scale, width: box.width });
  for (let dx = 0; dx < box.width; dx++) {
    const from = columns.from[dx];
    const value = from < 0 ? Number.NaN : largestOf(series, change, row, from, columns.to[dx]);
    const x = box.x + dx;
    const flat =
      value === 0 ? pixels.states[SETTLED] : pixels.movement[Math.round(changePlace(axis, value) * (LEVELS - 1))];
    for (let y = Math.max(0, box.y); y < Math.min(raster.height, box.y + box.height); y++) {
      raster.data[y * raster.width + x] = Number.isNaN(value) ? statePixel(pixels, NO_DATA, x, y, raster.ratio) : flat;
    }
  }
}
