/** Weight change against output change of each layer at a step. */

import { type FunctionSeries, largestOf, placeKey } from "./function";
import type { Overview } from "./overview";
import { lastAtOrBefore, type Series } from "./series";
import { FROZEN, MOVING, PRUNED, REACTIVATED, SETTLED, STATES } from "./states";

export interface Move {
  layer: string;
  /** Mean relative delta of the channels that nothing holds, 0 where none changed; NaN where that isn't known. */
  weights: number;
  /** Largest relative change of the output in the column's steps; NaN where there is none. */
  output: number;
  /** What most channels are where none changed; settled: free, and yet bit by bit the same. */
  state: number;
}

/** The columns of an overview pool steps; of the output the largest value in them is taken, too. */
export function outputIn(series: FunctionSeries, row: number, from: number, to: number): number {
  const first = lastAtOrBefore(series.steps, from - 1e-9) + 1;
  return largestOf(series, "relative", row, first, lastAtOrBefore(series.steps, to) + 1);
}

function weightsIn(series: Series, column: number): [number, number] {
  const count = (state: number) => series.counts[column * STATES + state];
  const mean = series.meanDelta[column];
  if (count(MOVING) > 0) return [mean, mean === 0 ? SETTLED : MOVING];
  const [still] = [FROZEN, PRUNED, SETTLED].sort((a, b) => count(b) - count(a));
  return [count(REACTIVATED) > 0 || count(still) === 0 ? Number.NaN : 0, still];
}

/** Each layer that has both, in a column of an overview without a threshold. */
export function movesIn(overview: Overview, series: FunctionSeries, layers: readonly string[], column: number): Move[] {
  if (column < 0) return [];
  const [from, to] = [overview.starts[column], overview.ends[column]];
  return layers.flatMap((layer) => {
    const row = series.rows.get(placeKey({ kind: "layer", name: layer }));
    const own = overview.series.get(layer);
    if (row === undefined || !own) return [];
    const [weights, state] = weightsIn(own, column);
    return [{ layer, weights, output: outputIn(series, row, from, to), state }];
  });
}
