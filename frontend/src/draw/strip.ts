/** The state strip: x = step, height = share of channels. */

import { levelOf } from "../model/delta";
import { pixelColumns, type Scale } from "../model/scale";
import type { Series } from "../model/series";
import { MOVING, NO_DATA, PRUNED, STACK, STATES } from "../model/states";
import type { Pixels } from "./palette";
import { type Box, fillBox, type Raster, statePixel } from "./raster";

/**
 * Draws a series into a box of the raster. Columns under one pixel are averaged; a violation in any of them is marked
 * by a line at the top, so that pooling never hides it.
 *
 * @param series null draws "no data".
 */
export function drawStrip(
  raster: Raster,
  box: Box,
  series: Series | null,
  scale: Scale,
  threshold: number,
  pixels: Pixels,
): void {
  const columns = series ? pixelColumns(series.starts, series.end, { ...scale, width: box.width }) : null;
  const tops = new Int32Array(STATES);
  const mark = Math.min(2 * raster.ratio, Math.ceil(box.height / 4));
  for (let dx = 0; dx < box.width; dx++) {
    const x = box.x + dx;
    let tint = 0;
    let violated = false;
    const from = columns ? columns.from[dx] : -1;
    if (series && columns && from >= 0) {
      const mean = poolColumns(series, from, columns.to[dx]);
      tint = pixels.movement[levelOf(mean, threshold)];
      for (let j = from; j < columns.to[dx]; j++) violated ||= series.violated[j] > 0;
      stack(pooledCounts, box.height, tops);
    } else {
      tops.fill(0);
      tops[STATES - 1] = box.height;
    }
    let y = box.y + box.height - 1;
    for (let s = 0, at = y * raster.width + x; s < STATES; s++) {
      const state = STACK[s];
      const until = box.y + box.height - tops[s];
      const flat = state === MOVING ? tint : pixels.states[state];
      const patterned = state === PRUNED || state === NO_DATA;
      for (; y >= until; y--, at -= raster.width) {
        raster.data[at] = patterned ? statePixel(pixels, state, dx, y, raster.ratio) : flat;
      }
    }
    if (violated) fillBox(raster, { x, y: box.y, width: 1, height: mark }, pixels.violated);
  }
}

const pooledCounts = new Float64Array(STATES);

/** Adds the columns [from, to) into `pooledCounts` and gives the mean delta of what moves. */
function poolColumns({ counts, meanDelta }: Series, from: number, to: number): number {
  pooledCounts.fill(0);
  let delta = 0;
  let weight = 0;
  for (let j = from; j < to; j++) {
    for (let s = 0; s < STATES; s++) pooledCounts[s] += counts[j * STATES + s];
    const moving = counts[j * STATES + MOVING];
    if (moving > 0 && meanDelta[j] > 0) {
      delta += moving * meanDelta[j];
      weight += moving;
    }
  }
  return weight > 0 ? delta / weight : 0;
}

/** Cumulative pixel heights in stacking order; they end exactly at `height`. */
function stack(counts: Float64Array, height: number, tops: Int32Array): void {
  let total = 0;
  for (let s = 0; s < STATES; s++) total += counts[s];
  let sum = 0;
  for (let s = 0; s < STATES; s++) {
    sum += counts[STACK[s]];
    tops[s] = total > 0 ? Math.round((sum / total) * height) : 0;
  }
  tops[STATES - 1] = height;
}
