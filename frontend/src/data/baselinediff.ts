/** One layer of a run against the same layer of another with the same origin, channel by channel. */

import type { Cells } from "./cells";
import { LEVELS } from "./delta";
import { placeOfDecades } from "./measure";
import { MOVING, NO_DATA, REACTIVATED, STATE_BITS, VIOLATED } from "./states";
import { lastAtOrBefore } from "./steps";

/** In differences, the state of a channel in a state that the other's is in too; its delta is how many decades they are apart. */
export const ALIKE = MOVING;
/** In differences, the state of a channel that trains while the other's doesn't. */
export const TRAINS = REACTIVATED;

/** Distances of deltas come in sixteenths of an octave, as deltas do; this one stands for all beyond. */
const FARTHEST = 16_000;

/** Decades between two deltas: places of distances, the last bit of which is the direction. */
const decades = Float64Array.from({ length: 2 * FARTHEST + 2 }, (_, place) => {
  const apart = place >> 1;
  return (apart >= FARTHEST ? Number.POSITIVE_INFINITY : (apart / 16) * Math.log10(2)) * (place & 1 ? 1 : -1);
});

/** Reactivated channels train as moving ones do. */
const kindOf = (byte: number): number => ((byte & STATE_BITS) === REACTIVATED ? MOVING : byte & STATE_BITS);

/** The place of the distance between two deltas, given as logarithms: it rises with the distance alone. */
function placeOfDistance(own: number, base: number): number {
  const apart = own - base;
  // Nothing is told apart from a delta that is no number, and both zero or both infinite are alike.
  if (Number.isNaN(apart)) return 0;
  return 2 * Math.min(FARTHEST, Math.round(Math.abs(apart))) + Number(apart > 0);
}

let levels: Uint8Array | null = null;

/** Colour of each distance: it rises with the distance, its last bit is the direction. */
export function distanceLevels(): Uint8Array {
  levels ??= Uint8Array.from(decades, (apart, place) => {
    const reach = Math.abs(placeOfDecades(apart));
    return 2 * Math.round(reach * (LEVELS / 2 - 1)) + (place & 1);
  });
  return levels;
}

/** The record of `other` in force at each record of `cells`, by the value of its step; -1 where there is none. */
export const alignedRecords = (cells: Pick<Cells, "steps">, other: Cells): Int32Array =>
  Int32Array.from(cells.steps, (step) => (step >= other.end ? -1 : lastAtOrBefore(other.steps, step)));

/**
 * Cells that draw the difference to a baseline: `ALIKE` with the distance of the deltas where both train, and with none
 * where both are held alike or settled; else the run's own state, `TRAINS` for one that trains; no data where one of the
 * two has no record. Violations stay marked.
 */
export function differenceCells(own: Cells, base: Cells): Cells {
  const state = new Uint8Array(own.state.length);
  const delta = new Uint16Array(own.state.length);
  const at = alignedRecords(own, base);
  const [ownLogs, baseLogs] = [own, base].map(({ values }) => values.map((value) => 16 * Math.log2(value)));
  for (let c = 0; c < own.channels; c++) {
    for (let t = 0, i = c * own.records; t < own.records; t++, i++) {
      const byte = own.state[i];
      if (at[t] < 0) continue;
      const j = c * base.records + at[t];
      const kind = kindOf(byte);
      const other = kindOf(base.state[j]);
      if (kind === NO_DATA || other === NO_DATA) continue;
      state[i] = (kind === other ? ALIKE : kind === MOVING ? TRAINS : kind) | (byte & VIOLATED);
      if (kind === MOVING && other === MOVING) {
        delta[i] = placeOfDistance(ownLogs[own.delta[i]], baseLogs[base.delta[j]]);
      }
    }
  }
  return { ...own, state, delta, values: decades };
}
