/** What tests and pictures are made of; nothing of the page imports it. */

import type { Cells } from "./cells";

/** Relative deltas as cells hold them: a list of values, and places in it. */
export function listed(deltas: readonly number[]): Pick<Cells, "delta" | "values"> {
  const values = Float64Array.from(new Set([0, ...deltas])).sort();
  const places = new Map(Array.from(values, (value, at) => [value, at]));
  const all = deltas.map((delta) => places.get(delta)!);
  return { values, delta: values.length <= 256 ? Uint8Array.from(all) : Uint16Array.from(all) };
}
