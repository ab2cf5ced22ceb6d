/** What the Compare view shows, as CSV files. */

import { type Laps, toCsv } from "../model/overlap";
import type { OverlapAnswer } from "../wire/types";
import { lapsOf, overlapOf } from "./comparedata";
import { chosen } from "./pair";

const PAIRS = "run,other,step,unit,mask,overlap,chance,intersection,union,layers,unmatched,reason".split(",");
const LAPS = "layer,first_step,last_step,overlap,chance,kept,other_kept,both,elements".split(",");

export function pairsCsv({ runs, pairs, step, unit, mask }: OverlapAnswer): string {
  const rows = pairs.map((pair) => [
    ...[runs[pair.a].name, runs[pair.b].name, step, unit, mask, pair.overlap, pair.chance, pair.intersection],
    ...[pair.union, pair.layers, pair.unmatched, pair.reason],
  ]);
  return toCsv([PAIRS, ...rows]);
}

export function lapsCsv({ header, starts, ends, ...laps }: Laps): string {
  const rows = header.layers.flatMap((layer, l) =>
    Array.from(starts, (start, k) => {
      const at = l * starts.length + k;
      const counts = [laps.kept[at], laps.otherKept[at], laps.both[at], header.elements[l]];
      return [layer, start, ends[k], laps.overlap[at], laps.chance[at], ...counts];
    }),
  );
  return toCsv([LAPS, ...rows]);
}

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
