/** How far a run is from the baseline: one measure as a strip, and the colours of channels over steps. */

import { LEVELS } from "../model/delta";
import type { Measure } from "../model/hash";
import { differenceOf, measureIn, placeOfDifference } from "../model/measure";
import { pixelColumns, type Scale } from "../model/scale";
import type { Series } from "../model/series";
import { MOVING, NO_DATA } from "../model/states";
import { distanceLevels, TRAINS } from "../model/versus";
import type { HeatmapStyle } from "./heatmap";
import { divergingPixel, type Pixels, pixelsOf, type Theme } from "./palette";
import { type Box, fillBox, type Raster, statePixel } from "./raster";

/** Fills the box, column by column, with the difference of a measure at the same steps; dotted where one has none. */
export function drawStripDifference(
  raster: Raster,
  box: Box,
  own: Series | null,
  base: Series | null,
  which: Measure,
  scale: Scale,
  pixels: Pixels,
): void {
  const wide = { ...scale, width: box.width };
  const valuesOf = (series: Series | null): number[] => {
    if (!series) return [];
    const { from, to } = pixelColumns(series.starts, series.end, wide);
    return Array.from(from, (first, x) => (first < 0 ? Number.NaN : measureIn(series, first, to[x], which)));
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
