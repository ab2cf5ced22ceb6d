/** What the Compare view shows, as CSV files. */

import { type Laps, lapAt, toCsv } from "../../model/overlap";
import type { OverlapAnswer } from "../../wire/types";
import { lapsOf, overlapOf } from "./overlaps";
import { chosen } from "./pair";

export const pairsCsv = ({ runs, pairs, step, unit, mask }: OverlapAnswer): string =>
  toCsv(pairs.map(({ a, b, ...rest }) => ({ run: runs[a].name, other: runs[b].name, step, unit, mask, ...rest })));

export const lapsCsv = (laps: Laps): string =>
  toCsv(
    laps.header.layers.flatMap((layer) =>
      Array.from(laps.starts, (start) => ({ layer, ...lapAt(laps, layer, start) })),
    ),
  );

export interface CsvFile {
  title: string;
  name: string;
  text: () => string;
}

/** The files that the download menu offers, as far as their data is there. */
export function compareFiles(): CsvFile[] {
  const pair = chosen.value;
  if (!pair) return [];
  const [answer, laps] = [overlapOf().value, lapsOf(pair).value];
  const files: CsvFile[] = [];
  if (answer) files.push({ title: "CSV of all pairs", name: "overlap", text: () => pairsCsv(answer) });
  if (laps) files.push({ title: "CSV by layer and step", name: "overlap_layers", text: () => lapsCsv(laps) });
  return files;
}
