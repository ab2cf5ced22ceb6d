/** Which channels the heatmap draws, in which order, and the zoom into them. */

import type { Cells } from "../data/cells";
import { summarise } from "../data/cells";
import { type Order, orderRows } from "../data/sort";
import { cellsOf } from "./answers";
import { layerIn, type Run, runs } from "./runs";
import { order, rowsOf, rowZoom } from "./store";

const orders = new WeakMap<Cells, Map<Order, Uint32Array>>();

/** The channels of a layer in an order; kept. */
export function ordered(cells: Cells, by: Order): Uint32Array {
  const kept = orders.get(cells) ?? new Map<Order, Uint32Array>();
  orders.set(cells, kept);
  const rows = kept.get(by) ?? orderRows(summarise(cells), by);
  kept.set(by, rows);
  return rows;
}

/** The run whose order the rows have, where that is not their own. */
export function orderRun(run: Run, layer: string): Run | null {
  if (rowsOf.value === null || rowsOf.value === run.name) return null;
  const other = runs.value.find((one) => one.name === rowsOf.value);
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

/** Those of the rows that are drawn; a zoom that lies outside shows all. */
export function drawnRows(all: Uint32Array): Uint32Array {
  const [from, to] = rowZoom.value ?? [0, all.length];
  if (from >= all.length || (from === 0 && to >= all.length)) return all;
  if (last.all !== all || last.from !== from || last.to !== to) last = { all, from, to, rows: all.subarray(from, to) };
  return last.rows;
}
