// Cells of a layer: how they come about, and how the server sends them: states in stretches, deltas by their places.

import { generator, hash } from "./random.mjs";

const codes = { noData: 0, moving: 1, reactivated: 2, settled: 3, frozen: 4, pruned: 5 };
const VIOLATED = 0x80;
const ZERO = -32768;

/** State and delta of one layer: [channel * records + record]. */
export function makeCells(kind, info, depth, steps, last, seed, patience = 5) {
  const C = info.channels;
  const T = steps.length;
  const state = new Uint8Array(C * T);
  const delta = new Int16Array(C * T);
  const next = generator(hash(info.id + kind) ^ seed);
  for (let c = 0; c < C; c++) {
    const rank = next();
    const stop = kind === "freeze" ? 2 : 0.3 + 0.75 * rank + 0.25 * depth;
    const pruneAt =
      kind === "prune"
        ? rank < 0.68
          ? 0.08 + 0.5 * (rank / 0.68) ** 1.6
          : 2
        : kind === "lottery"
          ? rank < 0.53
            ? -1
            : 2
          : 2;
    const freezeAt = kind === "freeze" || kind === "leak" ? 0.2 + 0.55 * depth : 2;
    let regrow = kind === "rigl" ? next() * 0.6 : -1;
    const awayAt = kind === "rigl" && rank < 0.55 ? next() * 0.4 - 0.15 : 2;
    if (awayAt > 1) regrow = -1;
    let walk = 0;
    for (let t = 0; t < T; t++) {
      const at = c * T + t;
      const f = last > 0 ? steps[t] / last : 0;
      walk = 0.9 * walk + 0.5 * (next() - 0.5);
      const decay = f < 0.5 ? 0 : f < 0.75 ? 1 : 2.1;
      const value = Math.min(1.2, 0.4 * 10 ** (walk - 1.4 * f - 0.6 * decay - 0.4 * rank));
      let code = codes.moving;
      let rel = value;
      if (f >= pruneAt) {
        code = codes.pruned;
        rel = 0;
      } else if (f >= freezeAt) {
        code = codes.frozen;
        rel = kind === "leak" ? 4e-4 : 0;
        if (kind === "leak") code |= VIOLATED;
      } else if (f >= awayAt && (regrow < 0 || f < Math.max(regrow, awayAt + 0.1))) {
        code = codes.pruned;
        rel = 0;
      } else if (regrow >= 0 && f >= awayAt && f < Math.max(regrow, awayAt + 0.1) + (patience * 1.0) / T)
        code = codes.reactivated;
      else if (f >= stop) {
        code = codes.settled;
        rel = value * 1e-3;
      }
      state[at] = code;
      delta[at] = rel === 0 ? -32768 : Math.round(16 * Math.log2(rel));
    }
  }
  return { state, delta, channels: C, records: T };
}

/** Where stretches of equal values begin, and where the last one ends. */
function stretches(values) {
  const starts = [];
  for (let at = 0; at < values.length; at++) if (at === 0 || values[at] !== values[at - 1]) starts.push(at);
  return [...starts, values.length];
}

export function cellSections({ state, delta, channels, records }) {
  const starts = stretches(state);
  const count = starts.length - 1;
  const lengths = Uint32Array.from({ length: count }, (_, i) => starts[i + 1] - starts[i]);
  const codes = [...new Set([ZERO, ...delta])].sort((a, b) => a - b);
  const places = new Map(codes.map((code, at) => [code, at]));
  const values = Float64Array.from(codes, (code) => (code === ZERO ? 0 : 2 ** (code / 16)));
  return [
    ["state", "u1", [count], Uint8Array.from({ length: count }, (_, i) => state[starts[i]])],
    ["state_lengths", "u4", [count], lengths],
    ["delta", "u2", [channels, records], Uint16Array.from(delta, (code) => places.get(code))],
    ["delta_values", "f8", [codes.length], values],
  ];
}
