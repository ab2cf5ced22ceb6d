/** "Δ now": one horizontal bar a channel, its length and tint the relative delta on the log scale. */

import type { Cells } from "../data/cells";
import { LEVELS, levelTable } from "../data/scale";
import { MOVING, STATE_BITS } from "../data/states";
import { type Box, fillBox, type Raster } from "./raster";
import type { Pixels } from "./theme";

/** Draws the bars at a record; rows under one pixel row pool by the largest. Held channels have none unless they moved. */
export function drawBars(
  raster: Raster,
  box: Box,
  cells: Cells,
  rows: Uint32Array,
  record: number,
  threshold: number,
  pixels: Pixels,
): void {
  if (record < 0) return;
  const levels = levelTable(cells.values, threshold);
  for (let dy = 0; dy < box.height; dy++) {
    const r0 = Math.floor((dy * rows.length) / box.height);
    const r1 = Math.max(r0 + 1, Math.floor(((dy + 1) * rows.length) / box.height));
    let level = 0;
    let state = MOVING;
    for (let r = r0; r < r1; r++) {
      const at = rows[r] * cells.records + record;
      const own = levels[cells.delta[at]];
      if (own > level) {
        level = own;
        state = cells.state[at] & STATE_BITS;
      }
    }
    if (level === 0) continue;
    const width = Math.max(1, Math.round((level / (LEVELS - 1)) * box.width));
    const pixel = state === MOVING ? pixels.movement[level] : pixels.states[state];
    fillBox(raster, { x: box.x, y: box.y + dy, width, height: 1 }, pixel);
  }
}
