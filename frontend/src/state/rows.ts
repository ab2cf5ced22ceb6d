/**
 * What is drawn in which order: the layers of the Network view, and the channels of a heatmap with the zoom into them.
 */

import { computed } from "@preact/signals";
import type { Cells } from "../data/cells";
import { summarise } from "../data/cells";
import { kept, keptByValue } from "../data/kept";
import type { Row } from "../data/layers";
import { type Order, orderRows } from "../data/sort";
import { cellsOf } from "./answers";
import { shownMeasure } from "./baseline";
import { cursor } from "./cursor";
import { layerIn, type Run, runs, shownRuns } from "./runs";
import { order, rowsOf, rowZoom, sorted } from "./store";
import { tree } from "./viewport";

/** The mean over the shown runs, of differences by their size; what has no value comes last. */
function weightOf({ layers: own }: Row): number {
  const values = shownRuns.value.map((run) => Math.abs(shownMeasure(run, own, cursor.value)));
  const present = values.filter((value) => !Number.isNaN(value));
  return present.length > 0 ? present.reduce((sum, value) => sum + value, 0) / present.length : -1;
}

export const rows = computed<Row[]>(() => {
  if (!sorted.value) return tree.value;
  const list = [...tree.value];
  const weights = new Map(list.map((row) => [row, row.kind === "total" ? Infinity : weightOf(row)]));
  return list.sort((a, b) => weights.get(b)! - weights.get(a)! || 0);
});

const ordersOf = kept((cells: Cells) => keptByValue((by: Order) => orderRows(summarise(cells), by)));

/** The channels of a layer in an order; kept. */
export const ordered = (cells: Cells, by: Order): Uint32Array => ordersOf(cells)(by);

/** The run whose order the rows have, where that is not their own. */
export function orderRun(run: Run, layer: string): Run | null {
  if (rowsOf.value === null || rowsOf.value === run.name) return null;
  const other = runs.value.find(({ name }) => name === rowsOf.value);
  const [own, theirs] = [layerIn(run, layer), other && layerIn(other, layer)];
  return other && own && theirs && own.channels === theirs.channels ? other : null;
}

/** All channels of a layer of a run, in the chosen order; in its own one while that of another run isn't there. */
export function allRows(run: Run, layer: string, cells: Cells): Uint32Array {
  const other = orderRun(run, layer);
  const theirs = other && cellsOf(other.name, layer).value;
  return ordered(theirs?.channels === cells.channels ? theirs : cells, order.value);
}

const NONE: Uint32Array = new Uint32Array(0);
let last = { all: NONE, from: 0, to: 0, rows: NONE };

/** The range that is drawn of so many rows; null where that is all of them, as in a zoom outside of them. */
export function zoomedRows(count: number): [number, number] | null {
  const [from, to] = rowZoom.value ?? [0, count];
  return from >= count || (from === 0 && to >= count) ? null : [from, Math.min(to, count)];
}

/** Those of the rows that are drawn. */
export function drawnRows(all: Uint32Array): Uint32Array {
  const range = zoomedRows(all.length);
  if (!range) return all;
  const [from, to] = range;
  if (last.all !== all || last.from !== from || last.to !== to) last = { all, from, to, rows: all.subarray(from, to) };
  return last.rows;
}
