/** How far a run is from the baseline: one measure as a strip, and the colours of channels over steps. */

import { distanceLevels, TRAINS } from "../data/difference";
import { differenceOf, placeOfDifference } from "../data/measure";
import { LEVELS, pixelColumns, type Scale } from "../data/scale";
import { MOVING, NO_DATA } from "../data/states";
import type { Measure } from "../data/urlstate";
import { type Columns, tintOf } from "./columns";
import type { HeatmapStyle } from "./heatmap";
import { type Box, fillBox, type Raster, statePixel } from "./raster";
import { divergingPixel, type Pixels, pixelsOf, type Theme } from "./theme";

/** Fills the box, column by column, with the difference of a measure at the same steps; dotted where one has none. */
export function drawStripDifference(
  raster: Raster,
  box: Box,
  own: Columns | null,
  base: Columns | null,
  which: Measure,
  scale: Scale,
  pixels: Pixels,
): void {
  const wide = { ...scale, width: box.width };
  const valuesOf = (columns: Columns | null): number[] => {
    if (!columns) return [];
    const { from, to } = pixelColumns(columns.starts, columns.end, wide);
    return Array.from(from, (first, x) => (first < 0 ? Number.NaN : tintOf(columns, first, to[x], which)));
  };
  const mine = valuesOf(own);
  const theirs = valuesOf(base);
  for (let dx = 0; dx < box.width; dx++) {
    const x = box.x + dx;
    const place = placeOfDifference(differenceOf(mine[dx], theirs[dx], which), which);
    if (place >= -1) {
      fillBox(raster, { ...box, x, width: 1 }, divergingPixel(pixels, place));
      continue;
    }
    for (let y = box.y; y < box.y + box.height; y++) {
      raster.data[y * raster.width + x] = statePixel(pixels, NO_DATA, x, y, raster.ratio);
    }
  }
}

const styles = new Map<Theme, HeatmapStyle>();

/** Draws the cells of a difference as a heatmap: distances on the diverging scale, states flat. */
export function differenceStyle(theme: Theme): HeatmapStyle {
  let style = styles.get(theme);
  if (!style) {
    const pixels = pixelsOf(theme);
    const states = Uint32Array.from(pixels.states);
    states[TRAINS] = pixels.states[MOVING];
    // A level is a distance and, in its last bit, a direction.
    const movement = Uint32Array.from({ length: LEVELS }, (_, level) => {
      const place = (level >> 1) / (LEVELS / 2 - 1);
      return divergingPixel(pixels, level & 1 ? place : -place);
    });
    style = { mode: "both", threshold: 0, levels: distanceLevels(), pixels: { ...pixels, states, movement } };
    styles.set(theme, style);
  }
  return style;
}
