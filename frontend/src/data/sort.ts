/** Orders of the rows of a heatmap, and the segments that its gutter names. */

import type { Summary } from "./cells";
import { FOLLOWING, FROZEN, MOVING, NO_DATA, NONFINITE, PRUNED, QUIET, REACTIVATED } from "./states";

export const ORDER_TITLES = {
  moved: "last moved",
  index: "index",
  held: "first frozen or pruned",
  delta: "final Δ",
};
export type Order = keyof typeof ORDER_TITLES;
export const ORDERS = Object.keys(ORDER_TITLES) as Order[];

const RANKS: number[] = [];
[NONFINITE, MOVING, REACTIVATED, QUIET, FOLLOWING, FROZEN, PRUNED, NO_DATA].forEach((state, rank) => {
  RANKS[state] = rank;
});

/** Channels in drawing order, top first. Ties keep the channel's index, so an order is always the same. */
export function orderRows(summary: Summary, order: Order): Uint32Array {
  const rows = Uint32Array.from(summary.final, (_, c) => c);
  const compare: Record<Order, (a: number, b: number) => number> = {
    index: () => 0,
    moved: (a, b) =>
      RANKS[summary.final[a]] - RANKS[summary.final[b]] ||
      summary.lastMoved[b] - summary.lastMoved[a] ||
      summary.firstHeld[b] - summary.firstHeld[a],
    held: (a, b) => summary.firstHeld[a] - summary.firstHeld[b],
    delta: (a, b) => summary.finalDelta[b] - summary.finalDelta[a],
  };
  return rows.sort((a, b) => compare[order](a, b) || a - b);
}

export interface Segment {
  state: number;
  from: number;
  to: number;
}

/** Runs of rows with the same final state; null unless the order groups by it. */
export function segmentsOf(summary: Summary, rows: Uint32Array, order: Order): Segment[] {
  if (order !== "moved") return [];
  const segments: Segment[] = [];
  rows.forEach((channel, i) => {
    const state = summary.final[channel];
    const last = segments[segments.length - 1];
    if (last?.state === state) last.to = i + 1;
    else segments.push({ state, from: i, to: i + 1 });
  });
  return segments;
}
