/** What is shown side by side of one layer. */

import type { Cells } from "../../data/cells";
import type { Run } from "../../state/runs";

export type Pair = readonly [Run, Run];

export interface Sides {
  layer: string;
  pair: Pair;
  /** null until they are there, or where the run has no such layer. */
  cells: readonly [Cells | null, Cells | null];
  /** The rows that are drawn of each; the same for both where channels can be matched. */
  rows: readonly [Uint32Array, Uint32Array];
  /** Where each channel is alive, by the colours of the runs; or how far B's delta is from A's. */
  third: Cells | null;
  moves: boolean;
}
