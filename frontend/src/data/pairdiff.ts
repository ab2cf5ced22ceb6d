/** Two runs of one layer, channel by channel: what is alive in which. */

import { alignedRecords } from "./baselinediff";
import type { Cells } from "./cells";
import { FROZEN, NO_DATA, PRUNED, REACTIVATED, SETTLED, STATE_BITS } from "./states";
import type { MaskKind } from "./urlstate";

/** The states that stand for where a channel is alive. */
export const BOTH = SETTLED;
export const ONLY_A = FROZEN;
export const ONLY_B = REACTIVATED;
export const NEITHER = PRUNED;

/** Whether a channel takes part: not pruned, and for the trainable mask not frozen either. */
export const isAlive = (state: number, mask: MaskKind): boolean =>
  state !== PRUNED && (mask === "kept" || state !== FROZEN);

function classOf(a: number, b: number, mask: MaskKind): number {
  if (a === NO_DATA || b === NO_DATA) return NO_DATA;
  if (isAlive(a, mask)) return isAlive(b, mask) ? BOTH : ONLY_A;
  return isAlive(b, mask) ? ONLY_B : NEITHER;
}

/** Cells over the steps of both runs that tell where each channel is alive. Both must have the same channels. */
export function aliveIn(a: Cells, b: Cells, mask: MaskKind): Cells {
  const steps = Float64Array.from(new Set([...a.steps, ...b.steps])).sort();
  const records = steps.length;
  const [own, other] = [alignedRecords({ steps }, a), alignedRecords({ steps }, b)];
  const table = Uint8Array.from({ length: 64 }, (_, i) => classOf(i >> 3, i & STATE_BITS, mask));
  const state = new Uint8Array(a.channels * records);
  for (let c = 0, at = 0; c < a.channels; c++) {
    for (let t = 0; t < records; t++, at++) {
      if (own[t] < 0 || other[t] < 0) continue;
      const first = a.state[c * a.records + own[t]] & STATE_BITS;
      state[at] = table[(first << 3) | (b.state[c * b.records + other[t]] & STATE_BITS)];
    }
  }
  const still = { delta: new Uint8Array(state.length), values: Float64Array.of(0) };
  return { ...a, steps, records, end: Math.max(a.end, b.end), state, ...still };
}
