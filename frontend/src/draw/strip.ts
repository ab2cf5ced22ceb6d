/** The state strip: x = step, height = share of channels. */

import { levelOf } from "../model/delta";
import { pixelColumns, type Scale } from "../model/scale";
import type { Series } from "../model/series";
import { MOVING, STACK, STATES } from "../model/states";
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
      const pooled = poolColumns(series, from, columns.to[dx]);
      tint = pixels.movement[levelOf(pooled.delta, threshold)];
      violated = pooled.violated;
      stack(pooled.counts, box.height, tops);
    } else {
      tops.fill(0);
      tops[STATES - 1] = box.height;
    }
    let y = box.y + box.height - 1;
    for (let s = 0; s < STATES; s++) {
      const state = STACK[s];
      const until = box.y + box.height - tops[s];
      for (; y >= until; y--) {
        raster.data[y * raster.width + x] = state === MOVING ? tint : statePixel(pixels, state, x, y, raster.ratio);
      }
    }
    if (violated) fillBox(raster, { x, y: box.y, width: 1, height: mark }, pixels.violated);
  }
}

const pooledCounts = new Float64Array(STATES);

function poolColumns(series: Series, from: number, to: number) {
  pooledCounts.fill(0);
  let delta = 0;
  let weight = 0;
  let violated = false;
  for (let j = from; j < to; j++) {
    for (let s = 0; s < STATES; s++) pooledCounts[s] += series.counts[j * STATES + s];
    const moving = series.counts[j * STATES + MOVING];
    if (moving > 0 && series.meanDelta[j] > 0) {
      delta += moving * series.meanDelta[j];
      weight += moving;
    }
    violated ||= series.violated[j] > 0;
  }
  return { counts: pooledCounts, delta: weight > 0 ? delta / weight : 0, violated };
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
