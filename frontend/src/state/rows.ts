/** The rows of the Network view: the tree in forward order, or all layers by the chosen measure. */

import { computed } from "@preact/signals";
import { type Row, treeRows } from "../data/layers";
import { shownMeasure } from "./baseline";
import { cursor } from "./cursor";
import { layers, shownRuns } from "./runs";
import { closed, layerFilter, sorted } from "./store";

/** The mean over the shown runs, of differences by their size; what has no value comes last. */
function weightOf({ layers: own }: Row): number {
  const values = shownRuns.value.map((run) => Math.abs(shownMeasure(run, own, cursor.value)));
  const known = values.filter((value) => !Number.isNaN(value));
  return known.length > 0 ? known.reduce((sum, value) => sum + value, 0) / known.length : -1;
}

export const rows = computed<Row[]>(() => {
  const list = treeRows(layers.value, new Set(closed.value), layerFilter.value.pattern, sorted.value);
  if (!sorted.value) return list;
  const weights = new Map(list.map((row) => [row, row.kind === "total" ? Infinity : weightOf(row)]));
  return list.sort((a, b) => weights.get(b)! - weights.get(a)! || 0);
});
