/** Two runs of one layer, channel by channel: how far apart they are, and in which of them a channel remains. */

import type { Cells } from "./cells";
import { placeOfDecades } from "./measure";
import { LEVELS } from "./scale";
import { FROZEN, MOVING, NO_DATA, PRUNED, QUIET, REACTIVATED, STATE_BITS, VIOLATED } from "./states";
import { lastAtOrBefore } from "./steps";
import type { MaskKind } from "./urlstate";

/**
 * In differences, the state of a channel in a state that the other's is in too; its delta is how many decades they are
 * apart.
 */
export const ALIKE = MOVING;
/** In differences, the state of a channel that trains while the other's doesn't. */
export const TRAINS = REACTIVATED;

/** The states that say in which run a channel remains. */
export const [BOTH, ONLY_A, ONLY_B, NEITHER] = [QUIET, FROZEN, REACTIVATED, PRUNED] as const;

/** Distances of deltas come in sixteenths of an octave, as deltas do; this one stands for all beyond. */
const FARTHEST = 16_000;

/** Decades between two deltas: places of distances, the last bit of which is the direction. */
const decades = Float64Array.from({ length: 2 * FARTHEST + 2 }, (_, place) => {
  const apart = place >> 1;
  return (apart >= FARTHEST ? Number.POSITIVE_INFINITY : (apart / 16) * Math.log10(2)) * (place & 1 ? 1 : -1);
});

let levels: Uint8Array | null = null;

/** Colour of each distance: it rises with the distance, its last bit is the direction. */
export function distanceLevels(): Uint8Array {
  levels ??= Uint8Array.from(decades, (apart, place) => {
    const reach = Math.abs(placeOfDecades(apart));
    return 2 * Math.round(reach * (LEVELS / 2 - 1)) + (place & 1);
  });
  return levels;
}

/** Visits the cells in force in both runs at each of some steps, by their places; none where one has no record. */
function eachPair(
  steps: Float64Array,
  a: Cells,
  b: Cells,
  visit: (place: number, own: number, other: number) => void,
): void {
  const [own, other] = [a, b].map((cells) =>
    Int32Array.from(steps, (step) => (step >= cells.end ? -1 : lastAtOrBefore(cells.steps, step))),
  );
  for (let c = 0, place = 0; c < a.channels; c++) {
    for (let t = 0; t < steps.length; t++, place++) {
      if (own[t] >= 0 && other[t] >= 0) visit(place, c * a.records + own[t], c * b.records + other[t]);
    }
  }
}

/** Reactivated channels train as moving ones do. */
const kindOf = (byte: number): number => ((byte & STATE_BITS) === REACTIVATED ? MOVING : byte & STATE_BITS);

/** The place of the distance between two deltas, given as logarithms: it depends only on the distance. */
function placeOfDistance(own: number, base: number): number {
  const apart = own - base;
  // Nothing is told apart from a delta that is no number, and both zero or both infinite are alike.
  if (Number.isNaN(apart)) return 0;
  return 2 * Math.min(FARTHEST, Math.round(Math.abs(apart))) + Number(apart > 0);
}

/**
 * Cells that draw the difference to a baseline: `ALIKE` with the distance of the deltas where both train, and with none
 * where both are held alike or quiet; else the run's own state, `TRAINS` for one that trains; no data where one of
 * the two has no record. Violations stay marked.
 */
export function differenceCells(own: Cells, base: Cells): Cells {
  const state = new Uint8Array(own.state.length);
  const delta = new Uint16Array(own.state.length);
  const [ownLogs, baseLogs] = [own, base].map(({ values }) => values.map((value) => 16 * Math.log2(value)));
  eachPair(own.steps, own, base, (place, i, j) => {
    const [kind, other] = [kindOf(own.state[i]), kindOf(base.state[j])];
    if (kind === NO_DATA || other === NO_DATA) return;
    state[place] = (kind === other ? ALIKE : kind === MOVING ? TRAINS : kind) | (own.state[i] & VIOLATED);
    if (kind === MOVING && other === MOVING) {
      delta[place] = placeOfDistance(ownLogs[own.delta[i]], baseLogs[base.delta[j]]);
    }
  });
  return { ...own, state, delta, values: decades };
}

/** Whether a channel takes part: not pruned, and for the trainable mask not frozen either. */
export const isAlive = (state: number, mask: MaskKind): boolean =>
  state !== PRUNED && (mask === "kept" || state !== FROZEN);

const stepsOf = (a: Cells, b: Cells) => Float64Array.from(new Set([...a.steps, ...b.steps])).sort();

/**
 * Cells over steps, by default those of both runs: in which of them each channel remains. Both must have the same
 * channels.
 */
export function aliveIn(a: Cells, b: Cells, mask: MaskKind, steps = stepsOf(a, b)): Cells {
  const state = new Uint8Array(a.channels * steps.length);
  const alive = Array.from({ length: STATE_BITS + 1 }, (_, code) => isAlive(code, mask));
  eachPair(steps, a, b, (place, i, j) => {
    const [first, second] = [a.state[i] & STATE_BITS, b.state[j] & STATE_BITS];
    if (first === NO_DATA || second === NO_DATA) return;
    state[place] = alive[first] ? (alive[second] ? BOTH : ONLY_A) : alive[second] ? ONLY_B : NEITHER;
  });
  const still = { delta: new Uint8Array(state.length), values: Float64Array.of(0) };
  return { ...a, steps, records: steps.length, end: Math.max(a.end, b.end), state, ...still };
}
