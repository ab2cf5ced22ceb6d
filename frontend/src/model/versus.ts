/** One layer of a run against the same layer of another with the same origin, channel by channel. */

import type { Cells } from "./cells";
import { DELTA_INFINITE, DELTA_NAN, DELTA_ZERO, LEVELS } from "./delta";
import { placeOfDecades } from "./measure";
import { lastAtOrBefore } from "./series";
import { MOVING, NO_DATA, REACTIVATED, STATE_BITS, VIOLATED } from "./states";

/** In differences, the state of a channel in a state that the other's is in too; its delta is how far they are apart. */
export const ALIKE = MOVING;
/** In differences, the state of a channel that trains while the other's doesn't. */
export const TRAINS = REACTIVATED;

const FARTHEST = 16_000;

/** Reactivated channels train as moving ones do. */
const kindOf = (byte: number): number => ((byte & STATE_BITS) === REACTIVATED ? MOVING : byte & STATE_BITS);

/** Distance and direction of two delta codes as a code that rises with the distance alone. */
function distanceCode(own: number, base: number): number {
  let apart = own - base;
  if (own === DELTA_NAN || base === DELTA_NAN || apart === 0) return DELTA_ZERO;
  if (own >= DELTA_INFINITE || base === DELTA_ZERO) apart = FARTHEST;
  else if (base >= DELTA_INFINITE || own === DELTA_ZERO) apart = -FARTHEST;
  return DELTA_ZERO + 2 * Math.min(FARTHEST, Math.abs(apart)) + Number(apart > 0);
}

/** Decades between two deltas, from the code of their distance. */
export function decadesOf(code: number): number {
  const apart = (code - DELTA_ZERO) >> 1;
  const decades = apart >= FARTHEST ? Number.POSITIVE_INFINITY : (apart / 16) * Math.log10(2);
  return (code - DELTA_ZERO) & 1 ? decades : -decades;
}

let levels: Uint8Array | null = null;

/** Colour of each distance, indexed by code + 32768: it rises with the distance, its last bit is the direction. */
export function distanceLevels(): Uint8Array {
  levels ??= Uint8Array.from({ length: 65536 }, (_, i) => {
    const place = placeOfDecades(decadesOf(i + DELTA_ZERO));
    return 2 * Math.round(Math.abs(place) * (LEVELS / 2 - 1)) + (i & 1);
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
  const delta = new Int16Array(own.state.length).fill(DELTA_ZERO);
  const at = alignedRecords(own, base);
  for (let c = 0; c < own.channels; c++) {
    for (let t = 0, i = c * own.records; t < own.records; t++, i++) {
      const byte = own.state[i];
      if (at[t] < 0) continue;
      const j = c * base.records + at[t];
      const kind = kindOf(byte);
      const other = kindOf(base.state[j]);
      if (kind === NO_DATA || other === NO_DATA) continue;
      state[i] = (kind === other ? ALIKE : kind === MOVING ? TRAINS : kind) | (byte & VIOLATED);
      if (kind === MOVING && other === MOVING) delta[i] = distanceCode(own.delta[i], base.delta[j]);
    }
  }
  return { ...own, state, delta };
}
