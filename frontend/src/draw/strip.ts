/** The state strip: x = step, height = share of channels. */

import type { Cells } from "../data/cells";
import { levelOf, pixelColumns, type Scale } from "../data/scale";
import { MOVING, NO_DATA, NONFINITE, PRUNED, REACTIVATED, STACK, STATES, VIOLATED } from "../data/states";
import { type Columns, columnsOf } from "./columns";
import { type Area, fillArea, HATCH, statePixel } from "./raster";
import type { Pixels } from "./theme";

/** Pools and stacks one pixel after the other. */
class Stack {
  readonly shares = new Float64Array(STATES);
  /** Cumulative heights in stacking order; the last is the whole height. */
  readonly tops = new Int32Array(STATES);
  marks = 0;
  /** The share of weights that is pruned, 0 where that isn't known. */
  pruned = 0;

  /** Adds up the columns [from, to). @returns the mean delta of what moves. */
  pool({ shares, marks, meanDelta, pruned }: Columns, from: number, to: number): number {
    this.shares.fill(0);
    this.marks = 0;
    this.pruned = 0;
    let delta = 0;
    let weight = 0;
    for (let j = from; j < to; j++) {
      for (let s = 0; s < STATES; s++) this.shares[s] += shares[j * STATES + s];
      this.marks |= marks[j];
      this.pruned += (pruned?.[j] || 0) / (to - from);
      const moving = shares[j * STATES + MOVING];
      if (!(moving > 0 && meanDelta[j] > 0)) continue;
      delta += moving * meanDelta[j];
      weight += moving;
    }
    return weight > 0 ? delta / weight : 0;
  }

  /** Turns shares into heights; what is rare keeps some pixels. */
  stack(height: number, reactivated: number, nonfinite: number): void {
    let total = 0;
    for (let s = 0; s < STATES; s++) total += this.shares[s];
    let sum = 0;
    for (let s = 0; s < STATES; s++) {
      sum += this.shares[STACK[s]];
      this.tops[s] = total > 0 ? Math.round((sum / total) * height) : height;
    }
    if (this.shares[REACTIVATED] > 0) this.widen(STACK.indexOf(REACTIVATED), Math.min(reactivated, height));
    if (this.shares[NONFINITE] > 0) this.widen(STACK.indexOf(NONFINITE), nonfinite);
  }

  /** Gives a state its least height, from the tallest of the others. */
  private widen(place: number, least: number): void {
    const { tops } = this;
    const heightOf = (s: number) => tops[s] - (s > 0 ? tops[s - 1] : 0);
    const lacking = least - heightOf(place);
    if (lacking <= 0) return;
    let tallest = place === 0 ? 1 : 0;
    for (let s = 0; s < STATES; s++) if (s !== place && heightOf(s) > heightOf(tallest)) tallest = s;
    for (let s = place; s < tallest; s++) tops[s] += lacking;
    for (let s = tallest; s < place; s++) tops[s] -= lacking;
  }
}

const pixelStack = new Stack();

/**
 * Draws columns into a box of the raster. Those under one pixel are averaged, but nothing rare disappears: what is
 * reactivated keeps a pixel, a violation is a line at the top, and what is nonfinite is at least such a line at the
 * bottom.
 *
 * @param columns null draws "no data".
 */
export function drawStrip(area: Area, columns: Columns | null, scale: Scale, threshold: number, pixels: Pixels): void {
  const { raster } = area;
  const under = columns ? pixelColumns(columns.starts, columns.end, { ...scale, width: area.width }) : null;
  const mark = Math.min(2 * raster.ratio, Math.ceil(area.height / 4));
  const { tops } = pixelStack;
  const pitch = HATCH * raster.ratio;
  for (let dx = 0; dx < area.width; dx++) {
    const x = area.x + dx;
    const from = under ? under.from[dx] : -1;
    let tint = 0;
    if (columns && under && from >= 0) {
      tint = pixels.movement[levelOf(pixelStack.pool(columns, from, under.to[dx]), threshold)];
      // The line of violations may cover the end of the band.
      pixelStack.stack(area.height, raster.ratio + (pixelStack.marks & VIOLATED ? mark : 0), mark);
    } else {
      pixelStack.marks = 0;
      pixelStack.pruned = 0;
      tops.fill(0);
      tops[STATES - 1] = area.height;
    }
    let y = area.y + area.height - 1;
    // As much of the height is hatched as weights are pruned, whole channels or single ones.
    const hatched = area.y + Math.round(pixelStack.pruned * area.height);
    for (let s = 0, place = y * raster.width + x; s < STATES; s++) {
      const state = STACK[s];
      const until = area.y + area.height - tops[s];
      const flat = state === MOVING ? tint : pixels.states[state];
      const patterned = state === PRUNED || state === NO_DATA;
      for (; y >= until; y--, place -= raster.width) {
        const hatch = y < hatched && state !== NO_DATA && (dx + y) % pitch < raster.ratio;
        raster.data[place] = hatch ? pixels.hatch : patterned ? statePixel(pixels, state, dx, y, raster.ratio) : flat;
      }
    }
    const { marks } = pixelStack;
    if (marks & VIOLATED) fillArea({ raster, x, y: area.y, width: 1, height: mark }, pixels.violated);
  }
}

/** The strip of a layer, a column a record. */
export const drawLayerStrip = (area: Area, cells: Cells, scale: Scale, pixels: Pixels): void =>
  drawStrip(area, columnsOf(cells), scale, cells.header.threshold, pixels);
