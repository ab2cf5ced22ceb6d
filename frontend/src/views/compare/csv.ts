/** What the Compare view shows, as CSV files. */

import { type LayerOverlaps, toCsv } from "../../data/overlap";
import type { OverlapAnswer } from "../../server/types";
import { cursor } from "../../state/cursor";
import { layerOverlapsAt, overlapOf, pairRuns } from "../../state/overlaps";
import type { CsvFile } from "../view";

const pairsCsv = ({ runs, pairs, step, unit, mask }: OverlapAnswer): string =>
  toCsv(pairs.map(({ a, b, ...rest }) => ({ run: runs[a].name, other: runs[b].name, step, unit, mask, ...rest })));

const layersCsv = ({ step, layers }: LayerOverlaps): string =>
  toCsv([...layers].map(([layer, numbers]) => ({ step, layer, ...numbers })));

/** The files that the download menu offers, as far as their data is there. */
export function overlapFiles(): CsvFile[] {
  const pair = pairRuns.value;
  if (!pair) return [];
  const [answer, overlaps] = [overlapOf().value, layerOverlapsAt(pair, cursor.value)];
  const files: CsvFile[] = [];
  if (answer) files.push({ title: "CSV of all pairs", name: ["overlap"], source: () => pairsCsv(answer) });
  if (overlaps) files.push({ title: "CSV by layer", name: ["overlap_layers"], source: () => layersCsv(overlaps) });
  return files;
}
