/** Where the rows of the Network view are, and which of them are drawn. */

import type { Row } from "./layers";

export const NAME_WIDTH = 224;
export const DOTS_WIDTH = 192;
export const GAP = 10;
export const MIN_COLUMN = 92;
/** Of the page, where it is shown. */
export const SIDEBAR = 272;

/** The width of a run's column in a network of that width. */
export const runColumn = (width: number, runs: number): number =>
  Math.max(MIN_COLUMN, Math.floor((width - NAME_WIDTH - DOTS_WIDTH - 2) / Math.max(1, runs)));

export interface Place {
  row: Row;
  top: number;
  height: number;
  stripTop: number;
  stripHeight: number;
  /** A line above the row. */
  ruled: boolean;
}

export interface Layout {
  places: Place[];
  height: number;
}

const TOTAL = 62;
const GROUP_EXTRA = 8;
const LEAF = 27;
const TALLEST_LEAF = 60;

/** Fixed row heights; a small network gets taller rows to fill the panel. */
export function placeRows(rows: readonly Row[], room: number): Layout {
  const leaves = rows.filter((row) => row.kind !== "total").length;
  const groups = rows.filter((row) => row.kind === "group").length;
  const free = Math.floor((room - TOTAL - 8 - groups * GROUP_EXTRA) / Math.max(1, leaves));
  const leaf = Math.min(TALLEST_LEAF, Math.max(LEAF, free));
  const places: Place[] = [];
  let top = 0;
  rows.forEach((row, i) => {
    const above = rows[i - 1];
    const block = row.kind === "group" || (row.kind === "layer" && row.depth < (above?.depth ?? 0));
    const ruled = i > 0 && (above.kind === "total" || (block && row.depth === 0));
    const extra = ruled ? GROUP_EXTRA : 0;
    const [height, inset, below] = row.kind === "total" ? [TOTAL, 7, 7] : [leaf + extra, 3 + extra, 4];
    places.push({ row, top, height, stripTop: top + inset, stripHeight: height - inset - below, ruled });
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
