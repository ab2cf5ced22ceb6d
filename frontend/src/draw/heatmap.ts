/** Channel × step cells. Zoomed out, delta pools by its largest value and state by majority (ties to the latest). */

import type { Cells } from "../model/cells";
import { levelTable } from "../model/delta";
import type { Mode } from "../model/hash";
import { pixelColumns, type Scale } from "../model/scale";
import { MOVING, STATE_BITS, STATES, VIOLATED } from "../model/states";
import type { Pixels } from "./palette";
import { type Box, type Raster, statePixel } from "./raster";

export interface HeatmapStyle {
  mode: Mode;
  threshold: number;
  pixels: Pixels;
  /** The tint of each code of delta, indexed by code + 32768; by default that of the threshold. */
  levels?: Uint8Array;
}

interface Pool {
  state: number;
  level: number;
  violated: boolean;
}

/** The cell of one pixel: rows [r0, r1) of the order and columns [c0, c1). */
function poolCells(
  cells: Cells,
  rows: Uint32Array,
  r0: number,
  r1: number,
  c0: number,
  c1: number,
  levels: Uint8Array,
  all: boolean,
  out: Pool,
): void {
  const { state, delta, records } = cells;
  if (r1 - r0 === 1 && c1 - c0 === 1) {
    const at = rows[r0] * records + c0;
    out.state = state[at] & STATE_BITS;
    out.level = levels[delta[at] + 32768];
    out.violated = (state[at] & VIOLATED) !== 0;
    return;
  }
  counts.fill(0);
  let level = 0;
  let marks = 0;
  for (let r = r0; r < r1; r++) {
    const row = rows[r] * records;
    for (let at = row + c0; at < row + c1; at++) {
      const byte = state[at];
      counts[byte & STATE_BITS]++;
      marks |= byte;
      const own = levels[delta[at] + 32768];
      if (own > level && (all || (byte & STATE_BITS) === MOVING)) level = own;
    }
  }
  let best = 0;
  for (let s = 1; s < STATES; s++) if (counts[s] > counts[best]) best = s;
  for (let r = r1 - 1, tied = true; r >= r0 && tied; r--) {
    const latest = state[rows[r] * records + c1 - 1] & STATE_BITS;
    if (counts[latest] === counts[best]) {
      best = latest;
      tied = false;
    }
  }
  out.state = best;
  out.level = level;
  out.violated = (marks & VIOLATED) !== 0;
}

const counts = new Int32Array(8);

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
  let previous = -1;
  for (let dy = 0; dy < box.height; dy++) {
    const y = box.y + dy;
    const r0 = Math.floor((dy * channels) / box.height);
    const r1 = Math.max(r0 + 1, Math.floor(((dy + 1) * channels) / box.height));
    // A row that is taller than a pixel repeats: copy the line above, unless hatch, dots or an outline depend on y.
    const edge = tall && isEdge(dy, r0, channels, box.height, line);
    for (let dx = 0; dx < box.width; dx++) {
      const x = box.x + dx;
      const c0 = columns.from[dx];
      if (c0 < 0) {
        raster.data[y * raster.width + x] = statePixel(pixels, 0, x, y, raster.ratio);
        continue;
      }
      if (dx === 0 || c0 !== previous || columns.to[dx] - c0 > 1) {
        poolCells(cells, rows, r0, r1, c0, columns.to[dx], levels, mode === "delta", out);
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
