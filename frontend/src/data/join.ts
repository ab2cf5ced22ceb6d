/** New columns of a layer joined to those that the page has. */

import type { Cells } from "./cells";
import { axisEnd } from "./steps";

const BYTE = 256;

/**
 * The cells with the columns that follow.
 *
 * @param cells what the page has.
 * @param tail the answer since its last step.
 * @returns null where the earlier columns no longer stand: after a restart, a finding about the past, or thinning. The
 * same object where nothing is new.
 */
export function joinCells(cells: Cells, tail: Cells): Cells | null {
  const { header } = tail;
  if (header.before === undefined || header.before !== cells.header.digest) return null;
  if (tail.channels !== cells.channels || header.variable !== cells.header.variable) return null;
  const said = (one: Cells) => JSON.stringify([one.header.events, one.header.account, one.header.past]);
  if (tail.records === 0 && said(tail) === said(cells)) return cells;
  const records = cells.records + tail.records;
  const after = (a: Float64Array, b: Float64Array): Float64Array => {
    const all = new Float64Array(records);
    all.set(a);
    all.set(b, cells.records);
    return all;
  };
  const state = new Uint8Array(cells.channels * records);
  const values = Float64Array.from(new Set([...cells.values, ...tail.values])).sort();
  const delta = new (values.length <= BYTE ? Uint8Array : Uint16Array)(cells.channels * records);
  const place = new Map(Array.from(values, (value, at) => [value, at]));
  for (const [part, from] of [
    [cells, 0],
    [tail, cells.records],
  ] as const) {
    const places = Uint16Array.from(part.values, (value) => place.get(value)!);
    for (let c = 0; c < cells.channels; c++) {
      const row = c * part.records;
      const to = c * records + from;
      state.set(part.state.subarray(row, row + part.records), to);
      for (let t = 0; t < part.records; t++) delta[to + t] = places[part.delta[row + t]];
    }
  }
  const steps = after(cells.steps, tail.steps);
  const rates = new Float32Array(records);
  rates.set(cells.learningRates);
  rates.set(tail.learningRates, cells.records);
  return {
    ...tail,
    records,
    steps,
    pastSteps: after(cells.pastSteps, tail.pastSteps),
    wallTimes: after(cells.wallTimes, tail.wallTimes),
    learningRates: rates,
    end: axisEnd(steps, steps),
    state,
    delta,
    values,
  };
}
