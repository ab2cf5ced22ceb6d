/**
 * A value over steps as a row of colours: an overlap, the change of an output, a difference. Dotted where none is
 * known.
 */

import { type ChangeAxis, changePlace, type FunctionSeries, largestOf } from "../data/function";
import { differenceOf, placeOfDifference } from "../data/measure";
import { LEVELS, type PixelColumns, pixelColumns, type Scale } from "../data/scale";
import { NO_DATA, QUIET } from "../data/states";
import type { Change, Measure } from "../data/urlstate";
import { type Columns, tintOf } from "./columns";
import { type Area, statePixel } from "./raster";
import { divergingPixel, type Pixels } from "./theme";

/** Columns of steps: the start of each, and the end of the last. */
interface StepColumns {
  starts: Float64Array;
  end: number;
}

const under = ({ starts, end }: StepColumns, { width }: Area, scale: Scale): PixelColumns =>
  pixelColumns(starts, end, { ...scale, width });

/** Fills a box of the raster, column by column of its pixels. */
function fillColumns(area: Area, pixels: Pixels, pixelAt: (dx: number) => number | null): void {
  const { raster } = area;
  const bottom = Math.min(raster.height, area.y + area.height);
  for (let dx = 0, x = area.x; dx < area.width; dx++, x++) {
    const pixel = pixelAt(dx);
    for (let y = Math.max(0, area.y); y < bottom; y++) {
      raster.data[y * raster.width + x] = pixel ?? statePixel(pixels, NO_DATA, x, y, raster.ratio);
    }
  }
}

/** Draws shares, 0 to 1, over columns of steps. Of columns under one pixel the last that is known counts. */
export function drawValues(
  area: Area,
  values: ArrayLike<number> | null,
  columns: StepColumns,
  scale: Scale,
  pixels: Pixels,
): void {
  const { from, to } = under(columns, area, scale);
  fillColumns(area, pixels, (dx) => {
    for (let j = to[dx] - 1; values && j >= 0 && j >= from[dx]; j--) {
      if (!Number.isNaN(values[j])) return pixels.overlap[Math.round(values[j] * (LEVELS - 1))];
    }
    return null;
  });
}

interface ChangeStyle {
  change: Change;
  axis: ChangeAxis;
  pixels: Pixels;
}

/** Draws the changes of one place's output. Zoomed out, a pixel shows the largest value under it. */
export function drawChanges(
  area: Area,
  series: FunctionSeries,
  row: number | undefined,
  scale: Scale,
  { change, axis, pixels }: ChangeStyle,
): void {
  const { from, to } = under({ starts: series.steps, end: series.end }, area, scale);
  fillColumns(area, pixels, (dx) => {
    const value = from[dx] < 0 ? Number.NaN : largestOf(series, change, row, from[dx], to[dx]);
    if (Number.isNaN(value)) return null;
    return value === 0 ? pixels.states[QUIET] : pixels.movement[Math.round(changePlace(axis, value) * (LEVELS - 1))];
  });
}

/** Draws the difference of a measure of two runs at the same steps. */
export function drawStripDifference(
  area: Area,
  own: Columns | null,
  base: Columns | null,
  which: Measure,
  scale: Scale,
  pixels: Pixels,
): void {
  const valuesOf = (columns: Columns | null): number[] => {
    if (!columns) return [];
    const { from, to } = under(columns, area, scale);
    return Array.from(from, (first, dx) => (first < 0 ? Number.NaN : tintOf(columns, first, to[dx], which)));
  };
  const [mine, theirs] = [own, base].map(valuesOf);
  fillColumns(area, pixels, (dx) => {
    const place = placeOfDifference(differenceOf(mine[dx], theirs[dx], which), which);
    return place >= -1 ? divergingPixel(pixels, place) : null;
  });
}
