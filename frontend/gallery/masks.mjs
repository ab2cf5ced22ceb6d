// What the synthetic networks hold: masks of single weights, their changes, and the weights that moved nevertheless.
import { random } from "./random.mjs";

const VIOLATED = 0x80;
const CAUSES = ["weight_decay", "momentum", "ema", "loaded", "optimizer_replaced", "not_recompiled", "bypassed"];
const ROUNDS = 5;

const elementsOf = (info) => info.weights / info.channels;

const ranks = new WeakMap();

/** A number in [0, 1) of each channel of a layer. */
function rankOf(info, channel) {
  if (!ranks.has(info))
    ranks.set(
      info,
      Float64Array.from({ length: info.channels }, (_, c) => random(`${info.id} ${c}`, 3)),
    );
  return ranks.get(info)[channel];
}

/** The shares of a channel's weights that its two masks let through at a record. */
export function masksOf(r, info, cells, channel, t) {
  const state = cells.state[channel * cells.records + t] & 7;
  const f = (t + 1) / cells.records;
  const rank = rankOf(info, channel);
  let kept = state === 5 ? 0 : 1;
  let trainable = state === 4 || state === 5 ? 0 : 1;
  if (r.kind === "ticket" || r.kind === "drift") {
    const round = Math.min(ROUNDS, Math.floor(f * (ROUNDS + 2)));
    kept = Math.max(0, Math.min(1, 0.725 ** round + (round > 0 ? 0.15 * (rank - 0.5) : 0)));
  }
  if (r.kind === "half_frozen" && f > 0.3) trainable = rank < 0.25 ? 0.9 : 0.5;
  const n = elementsOf(info);
  return { kept: Math.round(kept * n) / n, trainable: Math.round(trainable * n) / n };
}

const sentence = (entry) =>
  `${entry.variable}, channel ${entry.channel}: ${entry.elements} of ${entry.held} held weights moved from step ` +
  `${entry.first_step} on, by up to ${entry.largest ?? "a value that is not finite"}. Likely cause: ${entry.cause}.`;

/** The violations of one layer: whole channels in "leak", single weights in "drift". */
export function violationsOf(r, info) {
  const T = r.steps.length;
  if (T === 0 || (r.kind !== "leak" && r.kind !== "drift")) return [];
  const depth = r.layers.indexOf(info) / Math.max(1, r.layers.length - 1);
  const n = elementsOf(info);
  const found = [];
  for (let c = 0; c < info.channels; c++) {
    const rank = random(`${info.id} ${c}`, 5);
    if (r.kind === "drift" && rank > 0.3) continue;
    const whole = r.kind === "leak";
    const first = whole
      ? r.steps.findIndex((s) => s / r.steps[T - 1] >= 0.2 + 0.55 * depth)
      : Math.floor((0.3 + 0.6 * rank) * T);
    const last = whole || rank < 0.2 ? T - 1 : Math.min(T - 1, first + 10);
    const cause = whole ? "weight_decay" : [...CAUSES, "unknown", "cosmic_rays"][Math.floor(rank * 30)];
    const held = whole ? n : Math.max(1, Math.round(0.6 * n));
    found.push({
      layer: info.id,
      variable: info.variable,
      channel: c,
      first_step: r.steps[first],
      last_step: r.steps[last],
      elements: whole ? n : Math.max(1, Math.round(rank * held)),
      held,
      largest: cause === "loaded" ? null : 3e-5 * 10 ** (3 * rank),
      cause,
    });
  }
  return found.map((entry) => ({ ...entry, text: sentence(entry) }));
}

/** Marks the violated records in the states. */
export function markViolations(cells, r, info) {
  for (const entry of violationsOf(r, info)) {
    r.steps.forEach((step, t) => {
      if (step >= entry.first_step && step <= entry.last_step)
        cells.state[entry.channel * cells.records + t] |= VIOLATED;
    });
  }
}

/** The changes of the masks of a layer, as flags. */
export function maskEvents(r, info, cells) {
  const events = [];
  const before = { kept: info.weights, trainable: info.weights };
  const exact = ["ticket", "half_frozen", "drift"].includes(r.kind);
  for (let t = 0; exact && t < cells.records; t++) {
    for (const mask of ["kept", "trainable"]) {
      let through = 0;
      for (let c = 0; c < info.channels; c++) {
        through += Math.round(masksOf(r, info, cells, c, t)[mask] * elementsOf(info));
      }
      if (through !== before[mask]) {
        const text = `${mask} ${through.toLocaleString("en-US")} of ${info.weights.toLocaleString("en-US")} weights`;
        events.push({ step: r.steps[t], kind: mask, text });
      }
      before[mask] = through;
    }
  }
  return events;
}
