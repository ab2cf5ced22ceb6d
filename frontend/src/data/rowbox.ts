/** Where the rows of the Network view are, and which of them are drawn. */

import type { Row } from "./layers";

export const NAME_WIDTH = 224;
export const DOTS_WIDTH = 192;
export const GAP = 10;
export const MIN_COLUMN = 92;
/** Of the page, where it is shown. */
export const SIDEBAR = 272;

/** The width of a run's column in a network of that width. */
export const runColumn = (width: number, runs: number, names = NAME_WIDTH): number =>
  Math.max(MIN_COLUMN, Math.floor((width - names - DOTS_WIDTH - 2) / Math.max(1, runs)));

/** The narrowest cell of a row of repeated blocks, and the narrowest whose module is named. */
const [MIN_CELL, NAMED_CELL] = [9, 11];

/** The cells that a row has in a column of that width; null where it is one strip. */
export const cellsIn = (row: Row, width: number): readonly (string | null)[] | null =>
  row.kind === "group" && row.cells && width / row.cells.length >= MIN_CELL ? row.cells : null;

/** The cell at a place, and where it begins and ends. */
export function cellAt(count: number, width: number, x: number): { place: number; from: number; to: number } {
  const place = Math.min(count - 1, Math.max(0, Math.floor((x / width) * count)));
  return { place, from: (place / count) * width, to: ((place + 1) / count) * width };
}

export interface Place {
  row: Row;
  top: number;
  height: number;
  stripTop: number;
  stripHeight: number;
  /** A line above the row. */
  ruled: boolean;
  /** The height above it in which its modules are named. */
  named: number;
}

export interface Layout {
  places: Place[];
  height: number;
}

const TOTAL = 62;
const GROUP_EXTRA = 8;
const LEAF = 27;
const TALLEST_LEAF = 60;
/** So low are rows where all of them then fit. */
export const LOWEST_LEAF = 13;
const NAMED = 15;

/** The heights of a row's parts but its strip: above and below it. */
function insetsOf(row: Row, leaf: number): [number, number] {
  if (row.kind === "total") return [7, 7];
  return leaf < 20 ? [1, 1] : [3, 4];
}

/**
 * Fixed row heights; a small network gets taller rows to fill the panel, and a large one lower rows if all fit then.
 *
 * @param width of a run's strips.
 */
export function placeRows(rows: readonly Row[], room: number, width = 0): Layout {
  const leaves = rows.filter((row) => row.kind !== "total").length;
  const ruledAt = (row: Row, i: number): boolean => {
    const above = rows[i - 1];
    const block = row.kind === "group" || (row.kind === "layer" && row.depth < (above?.depth ?? 0));
    return i > 0 && (above.kind === "total" || (block && row.depth === 0));
  };
  const namedAt = (row: Row): number => {
    const cells = cellsIn(row, width);
    return row.kind === "group" && row.modules && cells && width / cells.length >= NAMED_CELL ? NAMED : 0;
  };
  const extras = rows.map((row, i) => (ruledAt(row, i) ? GROUP_EXTRA : 0) + namedAt(row));
  const free = Math.floor((room - TOTAL - 8 - extras.reduce((sum, extra) => sum + extra, 0)) / Math.max(1, leaves));
  const leaf = free >= LOWEST_LEAF ? Math.min(TALLEST_LEAF, free) : LEAF;
  const places: Place[] = [];
  let top = 0;
  rows.forEach((row, i) => {
    const [above, below] = insetsOf(row, leaf);
    const height = row.kind === "total" ? TOTAL : leaf + extras[i];
    const inset = above + extras[i];
    const strip = { stripTop: top + inset, stripHeight: height - inset - below };
    places.push({ row, top, height, ...strip, ruled: ruledAt(row, i), named: namedAt(row) });
    top += height;
  });
  return { places, height: top + 4 };
}

/** The row at a height, or null below the last. */
export const placeAt = (layout: Layout, y: number): Place | null =>
  layout.places.find((place) => y >= place.top && y < place.top + place.height) ?? null;

export interface Window {
  top: number;
  bottom: number;
  places: Place[];
}

/** A multiple of 20: hatch and dots continue when the pixels of a block are kept. */
const BLOCK = 60;

/** The block that contains a scroll offset. */
export const blockOf = (scroll: number): number => Math.floor(scroll / BLOCK);

/** Blocks above and below what is visible that are drawn too: a turn of a wheel scrolls to nothing new. */
export const AROUND = 4;

/** The part that is drawn around a block; around the last one where the rows have become fewer. */
export function drawnWindow(layout: Layout, wanted: number, height: number): Window {
  const block = Math.min(wanted, blockOf(layout.height));
  const top = Math.max(0, (block - AROUND) * BLOCK);
  const bottom = Math.min(layout.height, (block + 1 + Math.ceil(height / BLOCK) + AROUND) * BLOCK);
  const places = layout.places.filter((place) => place.top + place.height > top && place.top < bottom);
  return { top, bottom, places };
}
