/** Weight change against output change of each layer, at one record of the probe. */

import { changeOf, type FunctionSeries, placeKey, probedAt } from "./function";
import type { Figures } from "./record";
import { FROZEN, MOVING, PRUNED, REACTIVATED, SETTLED } from "./states";

export interface Move {
  layer: string;
  /** Mean relative delta of unfrozen channels, 0 where none changed; NaN where that isn't known. */
  weights: number;
  /** Relative change of the output; NaN where there is none. */
  output: number;
  /** What most channels are where none changed; settled: free, and yet bit by bit the same. */
  state: number;
}

function weightsOf({ counts, meanDelta }: Figures): [number, number] {
  if (counts[MOVING] > 0) return [meanDelta, meanDelta === 0 ? SETTLED : MOVING];
  const [still] = [FROZEN, PRUNED, SETTLED].sort((a, b) => counts[b] - counts[a]);
  return [counts[REACTIVATED] > 0 || counts[still] === 0 ? Number.NaN : 0, still];
}

/**
 * Each layer that has both, at the record of the probe in force at a step.
 *
 * @param figuresOf the figures of a layer at that record's step, as if no channel ever settled.
 */
export function movesAt(
  series: FunctionSeries,
  layers: readonly string[],
  step: number,
  figuresOf: (layer: string, step: number) => Figures | null,
): Move[] {
  const record = probedAt(series, step);
  if (record < 0) return [];
  return layers.flatMap((layer) => {
    const row = series.rows.get(placeKey({ kind: "layer", name: layer }));
    const figures = row === undefined ? null : figuresOf(layer, series.steps[record]);
    if (!figures) return [];
    const [weights, state] = weightsOf(figures);
    return [{ layer, weights, output: changeOf(series, "relative", row, record), state }];
  });
}
