// Overlap of the synthetic networks' masks, from the same states and shares as everything else.
import { cellsOf, container, sampledRun } from "./data.mjs";
import { masksOf } from "./masks.mjs";

const few = new Map();

/** A run that is too large to be made is compared by a part of its channels and records. */
function made(scenario, r) {
  const key = `${scenario}\n${r.name}`;
  if (r.sampled && !few.has(key)) few.set(key, sampledRun(r, 60));
  return few.get(key) ?? r;
}

const has = (r, info) => r.layers.some((other) => other.id === info.id && other.weights === info.weights);

const EMPTY = { kept: 0, other: 0, both: 0, meet: 0, join: 0 };

/** The last record at or before a step; -1 before the first one, and past the width of the last. */
function recordAt(r, step) {
  const T = r.steps.length;
  const gap = T > 1 ? r.steps[T - 1] - r.steps[T - 2] : 1;
  if (T === 0 || step >= r.steps[T - 1] + Math.max(1, gap)) return -1;
  let t = -1;
  while (t + 1 < T && r.steps[t + 1] <= step) t++;
  return t;
}

const sizes = new Map();

/** What each channel of a layer lets through at a record: of its weights, or 1 or 0 of itself. */
function sizesOf(scenario, r, info, t, unit, mask) {
  const key = [scenario, r.name, info.id, t, unit, mask].join("\n");
  let found = sizes.get(key);
  if (!found) {
    const cells = cellsOf(scenario, r, info);
    const n = info.weights / info.channels;
    found = Float64Array.from({ length: info.channels }, (_, c) => {
      const state = cells.state[c * cells.records + t] & 7;
      if (unit === "channels") return state === 5 || (mask === "trainable" && state === 4) ? 0 : (info.scale ?? 1);
      const { kept, trainable } = masksOf(r, info, cells, c, t);
      return Math.round((mask === "kept" ? kept : Math.min(kept, trainable)) * n);
    });
    sizes.set(key, found);
  }
  return found;
}

/** One layer of two runs at their records. Of two partly kept channels the kept weights meet as if by chance. */
function meet(scenario, [a, b], info, [ta, tb], unit, mask) {
  const n = unit === "channels" ? (info.scale ?? 1) : info.weights / info.channels;
  const [own, other] = [sizesOf(scenario, a, info, ta, unit, mask), sizesOf(scenario, b, info, tb, unit, mask)];
  const sum = { ...EMPTY, elements: n * info.channels };
  own.forEach((size, c) => {
    sum.kept += size;
    sum.other += other[c];
    sum.both += a === b ? size : Math.round((size * other[c]) / n);
  });
  const [d1, d2] = [sum.kept / sum.elements, sum.other / sum.elements];
  sum.meet = sum.elements * d1 * d2;
  sum.join = sum.elements * (d1 + d2 - d1 * d2);
  return sum;
}

const ratio = (part, whole) => (whole === 0 ? 1 : part / whole);
const known = (r, unit) => unit === "channels" || r.masks !== false;

function reasonOf(a, b, records, unit) {
  if (a.origin !== b.origin) return "origin";
  if (!a.layers.some((info) => has(b, info))) return "layers";
  if (records.some((t) => t < 0)) return "no record";
  return known(a, unit) && known(b, unit) ? null : "unknown";
}

/** The answer of `overlap`. */
export function overlapAnswer(scenario, whole, query) {
  const runs = whole.map((r) => made(scenario, r));
  const unit = query.get("unit") ?? "weights";
  const mask = query.get("mask") ?? "kept";
  const step = Number(query.get("step"));
  const layer = query.get("layer");
  const records = runs.map((r) => recordAt(r, step));
  const layers = (r) => r.layers.filter((info) => layer === null || info.id === layer);
  const pairs = [];
  runs.forEach((a, i) => {
    runs.slice(i + 1).forEach((b, at) => {
      const j = i + 1 + at;
      const reason = reasonOf(a, b, [records[i], records[j]], unit);
      const matched = layers(a).filter((info) => has(b, info));
      const sum = { ...EMPTY };
      if (reason === null) {
        for (const info of matched) {
          const one = meet(scenario, [a, b], info, [records[i], records[j]], unit, mask);
          for (const key of Object.keys(EMPTY)) sum[key] += one[key];
        }
      }
      const union = sum.kept + sum.other - sum.both;
      pairs.push({
        a: i,
        b: j,
        comparable: reason === null,
        reason,
        overlap: reason === null ? ratio(sum.both, union) : null,
        chance: reason === null ? ratio(sum.meet, sum.join) : null,
        intersection: reason === null ? sum.both : null,
        union: reason === null ? union : null,
        layers: matched.length,
        unmatched: layers(a).length + layers(b).length - 2 * matched.length,
      });
    });
  });
  const parts = runs.map((r, i) => ({
    name: whole[i].name,
    step: records[i] < 0 ? null : r.steps[records[i]],
    origin: r.origin,
    kept:
      records[i] < 0 || !known(r, unit)
        ? null
        : layers(r).reduce(
            (sum, info) => sum + meet(scenario, [r, r], info, [records[i], records[i]], unit, mask).kept,
            0,
          ),
    elements: layers(r).reduce(
      (sum, info) => sum + (unit === "channels" ? info.channels * (info.scale ?? 1) : info.weights),
      0,
    ),
  }));
  return { schema: 1, step, unit, mask, layer, runs: parts, pairs, notes: [] };
}

/** The answer of `overlap_layers`. */
export function overlapLayersAnswer(scenario, run, other, query) {
  const [a, b] = [made(scenario, run), made(scenario, other)];
  const unit = query.get("unit") ?? "weights";
  const mask = query.get("mask") ?? "kept";
  const steps = [...new Set([...a.steps, ...b.steps])].sort((x, y) => x - y);
  const K = Math.min(steps.length, Number(query.get("cols") ?? 256));
  const starts = Array.from({ length: K }, (_, k) => Math.floor((k * steps.length) / K));
  const ends = Float64Array.from(starts, (_, k) => steps[(starts[k + 1] ?? steps.length) - 1]);
  const matched = a.layers.filter((info) => has(b, info));
  const L = matched.length;
  const make = (Kind) => new Kind(L * K).fill(Number.NaN);
  const out = { overlap: make(Float32Array), chance: make(Float32Array) };
  const counts = { kept: make(Float64Array), other: make(Float64Array), both: make(Float64Array) };
  const all = [...steps].map((step) => [recordAt(a, step), recordAt(b, step)]);
  const reason = reasonOf(a, b, all.some((pair) => pair.every((t) => t >= 0)) ? [] : [-1], unit);
  matched.forEach((info, l) => {
    ends.forEach((step, k) => {
      const [ta, tb] = [recordAt(a, step), recordAt(b, step)];
      const at = l * K + k;
      if (ta >= 0 && known(a, unit)) counts.kept[at] = meet(scenario, [a, a], info, [ta, ta], unit, mask).kept;
      if (tb >= 0 && known(b, unit)) counts.other[at] = meet(scenario, [b, b], info, [tb, tb], unit, mask).kept;
      if (ta < 0 || tb < 0 || reason !== null) return;
      const one = meet(scenario, [a, b], info, [ta, tb], unit, mask);
      counts.both[at] = one.both;
      out.overlap[at] = ratio(one.both, one.kept + one.other - one.both);
      out.chance[at] = ratio(one.meet, one.join);
    });
  });
  return container(
    {
      schema: 1,
      run: run.name,
      other: other.name,
      unit,
      mask,
      comparable: reason === null,
      reason,
      layers: matched.map((info) => info.id),
      elements: matched.map((info) => (unit === "channels" ? info.channels * (info.scale ?? 1) : info.weights)),
      unmatched: [...a.layers, ...b.layers].filter((info) => !has(a, info) || !has(b, info)).map((info) => info.id),
      notes: [],
    },
    [
      ["first_steps", "f8", [K], Float64Array.from(starts, (t) => steps[t])],
      ["steps", "f8", [K], ends],
      ["overlap", "f4", [L, K], out.overlap],
      ["chance", "f4", [L, K], out.chance],
      ["kept", "f8", [L, K], counts.kept],
      ["other_kept", "f8", [L, K], counts.other],
      ["both", "f8", [L, K], counts.both],
    ],
  );
}
