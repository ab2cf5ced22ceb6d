/** What tests and pictures are made of; nothing of the page imports it. */

import type { Cells } from "./cells";
import { type Figures, nothing } from "./record";

/** Relative deltas as cells hold them: a list of values, and places in it. */
export function listed(deltas: readonly number[]): Pick<Cells, "delta" | "values"> {
  const values = Float64Array.from(new Set([0, ...deltas])).sort();
  const places = new Map(Array.from(values, (value, at) => [value, at]));
  const all = deltas.map((delta) => places.get(delta)!);
  return { values, delta: values.length <= 256 ? Uint8Array.from(all) : Uint16Array.from(all) };
}

/** Figures of so many channels by state code. */
export function figured(counts: readonly number[], patch: Partial<Figures> = {}): Figures {
  const channels = counts.reduce((sum, count) => sum + count, 0);
  return {
    ...nothing(0),
    counts: [...counts],
    total: channels - counts[0],
    channels,
    ...patch,
  };
}
