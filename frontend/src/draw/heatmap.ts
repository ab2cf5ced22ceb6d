/** Channel × step cells. Zoomed out, delta pools by its largest value and state by majority (ties to the latest). */

import type { Cells } from "../model/cells";
import { levelTable } from "../model/delta";
import type { Mode } from "../model/hash";
import { pixelColumns, type Scale } from "../model/scale";
import { MOVING } from "../model/states";
import { bandsOf, type Pool, poolBand, rowsUnder } from "./bands";
import type { Pixels } from "./palette";
import { type Box, type Raster, statePixel } from "./raster";

export interface HeatmapStyle {
  mode: Mode;
  threshold: number;
  pixels: Pixels;
  /** The tint of each code of delta, indexed by code + 32768; by default that of the threshold. */
  levels?: Uint8Array;
}

/** Draws the rows [first, last) of the order into the box. */
export function drawCells(
  raster: Raster,
  box: Box,
  cells: Cells,
  rows: Uint32Array,
  scale: Scale,
  style: HeatmapStyle,
): void {
  const { pixels, mode } = style;
  const columns = pixelColumns(cells.steps, cells.end, { ...scale, width: box.width });
  const levels = style.levels ?? levelTable(style.threshold);
  const channels = rows.length;
  const out: Pool = { state: 0, level: 0, violated: false };
  const tall = box.height / channels >= 5 * raster.ratio;
  // Of moving rows the outline has to be seen on any tint.
  const line = box.height / channels >= 12 * raster.ratio ? 2 * raster.ratio : raster.ratio;
  let bands = bandsOf(cells, rows, box.height, levels, 0);
  let previous = -1;
  for (let dy = 0; dy < box.height; dy++) {
    const y = box.y + dy;
    if (dy === bands.end) bands = bandsOf(cells, rows, box.height, levels, dy);
    const first = bands.at[dy - bands.from];
    const pooled = mode === "delta" ? bands.levels : bands.moving;
    const edge = tall && isEdge(dy, rowsUnder(dy, box.height, channels)[0], channels, box.height, line);
    for (let dx = 0; dx < box.width; dx++) {
      const x = box.x + dx;
      const c0 = columns.from[dx];
      if (c0 < 0) {
        raster.data[y * raster.width + x] = statePixel(pixels, 0, x, y, raster.ratio);
        continue;
      }
      if (dx === 0 || c0 !== previous || columns.to[dx] - c0 > 1) {
        poolBand(bands, first + c0, first + columns.to[dx], pooled, out);
      }
      previous = c0;
      let pixel: number;
      if (out.violated && (!tall || edge)) pixel = pixels.violated;
      else if (mode === "delta" && out.state !== 0) pixel = pixels.movement[out.level];
      else if (out.state === MOVING && mode === "both") pixel = pixels.movement[out.level];
      else pixel = statePixel(pixels, out.state, x, y, raster.ratio);
      raster.data[y * raster.width + x] = pixel;
    }
    previous = -1;
  }
}

function isEdge(dy: number, row: number, channels: number, height: number, line: number): boolean {
  const top = Math.ceil((row * height) / channels);
  const bottom = Math.ceil(((row + 1) * height) / channels);
  return dy - top < line || bottom - dy <= line;
}
