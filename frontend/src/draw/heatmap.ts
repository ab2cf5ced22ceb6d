/**
 * Channel × step cells. Zoomed out, delta pools by its largest value and state by majority (ties to the latest), but
 * nothing rare disappears: reactivated wins over all states; cells that are violated or not finite are striped in their
 * colour, and the first pixel of such a stretch always has it. Rows that are tall enough have an outline for violated.
 */

import type { Cells } from "../data/cells";
import { LEVELS, levelTable, type PixelColumns, pixelColumns, type Scale } from "../data/scale";
import { MOVING, NO_DATA, NONFINITE, REACTIVATED, STATE_BITS } from "../data/states";
import type { Mode } from "../data/urlstate";
import {
  ANY_NONFINITE,
  ANY_REACTIVATED,
  ANY_VIOLATED,
  type Bands,
  bandsOf,
  LEVEL,
  MIXED,
  mostOf,
  poolBand,
  rowsUnder,
} from "./bands";
import { type Area, fillArea, statePixel } from "./raster";
import type { Pixels } from "./theme";

export interface HeatmapStyle {
  mode: Mode;
  threshold: number;
  pixels: Pixels;
  /** The tint of each value of the cells' list; by default that of the threshold. */
  levels?: Uint8Array;
}

/** Rows of pixels that are drawn together. */
const PART = 16;

/** Draws the channels of the order into the box, part by part: while an older picture is shown, the rest can wait. */
export function* drawParts(
  area: Area,
  cells: Cells,
  rows: Uint32Array,
  scale: Scale,
  style: HeatmapStyle,
): Generator<void> {
  const levels = style.levels ?? levelTable(cells.values, style.threshold);
  const columns = pixelColumns(cells.steps, cells.end, { ...scale, width: area.width });
  const bandsFrom = (dy: number) => bandsOf(cells, rows, area.height, dy, levels, style.mode === "delta");
  let bands = bandsFrom(0);
  for (let dy = 0; dy < area.height; dy++) {
    if (dy === bands.end) bands = bandsFrom(dy);
    drawRow(area, dy, columns, bands, style);
    if (dy % PART === PART - 1) yield;
  }
}

/** The same at once. */
export function drawCells(...picture: Parameters<typeof drawParts>): void {
  const parts = drawParts(...picture);
  while (!parts.next().done);
}

function drawRow(area: Area, dy: number, columns: PixelColumns, bands: Bands, { pixels, mode }: HeatmapStyle): void {
  const { raster } = area;
  const channels = bands.rows.length;
  const y = area.y + dy;
  const { sums } = bands;
  const first = bands.at[dy - bands.from];
  const under = rowsUnder(dy, area.height, channels);
  const tall = area.height / channels >= 5 * raster.ratio;
  // Of moving rows the outline has to be seen on any tint.
  const line = area.height / channels >= 12 * raster.ratio ? 2 * raster.ratio : raster.ratio;
  const edge = tall && isEdge(dy, under[0], channels, area.height, line);
  const pitch = 3 * raster.ratio;
  let [from, to, pooled, state, before] = [-2, -2, 0, NO_DATA, 0];
  for (let dx = 0, x = area.x, at = y * raster.width + x; dx < area.width; dx++, x++, at++) {
    if (columns.from[dx] !== from || columns.to[dx] !== to) {
      from = columns.from[dx];
      to = columns.to[dx];
      pooled = from < 0 ? 0 : poolBand(sums, first + from, first + to);
      if (from < 0) state = NO_DATA;
      else if (pooled & ANY_NONFINITE) state = NONFINITE;
      else if (pooled & ANY_REACTIVATED && !pixels.lines) state = REACTIVATED;
      else if (pooled & MIXED) state = mostOf(bands, first, under, from, to, pooled);
      else state = (pooled & 7) - 1;
    }
    const begun = pooled & ~before;
    before = pooled;
    const striped = tall ? edge : begun & ANY_VIOLATED || (x + y) % pitch < raster.ratio;
    const tinted = mode === "delta" ? state !== NO_DATA && state !== NONFINITE : mode === "both" && state === MOVING;
    if (pooled & ANY_VIOLATED && striped) raster.data[at] = pixels.violated;
    else if (tinted) {
      raster.data[at] = pixels.movement[pooled >>> LEVEL];
    } else raster.data[at] = statePixel(pixels, state, x, y, raster.ratio);
  }
}

function isEdge(dy: number, row: number, channels: number, height: number, line: number): boolean {
  const top = Math.ceil((row * height) / channels);
  const bottom = Math.ceil(((row + 1) * height) / channels);
  return dy - top < line || bottom - dy <= line;
}

/**
 * Draws "Δ now": one horizontal bar a channel at a record, its length and tint the relative delta on the log scale.
 * Rows under one pixel row pool by the largest. Held channels have none unless they moved.
 */
export function drawBars(
  area: Area,
  cells: Cells,
  rows: Uint32Array,
  record: number,
  threshold: number,
  pixels: Pixels,
): void {
  if (record < 0) return;
  const levels = levelTable(cells.values, threshold);
  for (let dy = 0; dy < area.height; dy++) {
    const [first, end] = rowsUnder(dy, area.height, rows.length);
    let [level, state] = [0, MOVING];
    for (let r = first; r < end; r++) {
      const cell = rows[r] * cells.records + record;
      const own = levels[cells.delta[cell]];
      if (own > level) [level, state] = [own, cells.state[cell] & STATE_BITS];
    }
    if (level === 0) continue;
    const width = Math.max(1, Math.round((level / (LEVELS - 1)) * area.width));
    const pixel = state === MOVING ? pixels.movement[level] : pixels.states[state];
    fillArea({ ...area, y: area.y + dy, width, height: 1 }, pixel);
  }
}
