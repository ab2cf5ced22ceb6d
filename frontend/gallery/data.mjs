// Synthetic networks for development and screenshots: deterministic, in the shapes of the HTTP contract.

import { cellSections, makeCells } from "./cells.mjs";
import { functionAnswer } from "./function.mjs";
import { markViolations, maskEvents, masksOf, violationsOf } from "./masks.mjs";

const NAMES = ["no data", "moving", "reactivated", "settled", "frozen", "pruned"];
const VIOLATED = 0x80;

function layer(id, type, shape, channels) {
  const at = id.lastIndexOf("/");
  const weights = shape.reduce((a, b) => a * b, 1);
  const kernel = { id: `${id}/kernel`, role: "kernel", shape, axis: "-1", verified: true, channels };
  return {
    id,
    group: at < 0 ? "" : id.slice(0, at),
    name: id.slice(at + 1),
    type,
    variable: kernel.id,
    role: "kernel",
    shape,
    axis: "-1",
    verified: true,
    channels,
    weights,
    variables: [kernel, { id: `${id}/bias`, role: "bias", shape: [channels], axis: "0", verified: true, channels }],
  };
}

function resnet() {
  const layers = [layer("conv1", "Conv2D", [7, 7, 3, 64], 64)];
  let before = 64;
  for (const [g, width] of [64, 128, 256, 512].entries()) {
    const names =
      g === 0
        ? ["0.conv1", "0.conv2", "1.conv1", "1.conv2"]
        : ["0.conv1", "0.conv2", "0.downsample", "1.conv1", "1.conv2"];
    for (const name of names) {
      layers.push(
        layer(
          `layer${g + 1}/${name}`,
          "Conv2D",
          name === "0.downsample" ? [1, 1, before, width] : [3, 3, width, width],
          width,
        ),
      );
    }
    before = width;
  }
  layers.push(layer("fc", "Dense", [512, 100], 100));
  return layers;
}

function run(name, kind, layers, steps, extra = {}) {
  return {
    name,
    kind,
    layers,
    steps: Float64Array.from(steps),
    network: 0,
    origin: "9c1e5512",
    past: "previous",
    closed: true,
    every: 250,
    ...extra,
  };
}

const range = (n, unit, first = 0) => Array.from({ length: n }, (_, i) => first + i * unit);

export const scenarios = {
  mock() {
    const layers = resnet();
    const steps = range(161, 250);
    return {
      runs: [
        run("dense", "dense", layers, steps, { probe: true }),
        run("freeze_early", "freeze", layers, steps, { probe: true }),
        run("lottery_s0", "lottery", layers, steps, { probe: true }),
        run("prune_grad", "prune", layers, steps, { probe: true }),
        run("set_rigl", "rigl", layers, steps, { closed: false }),
      ],
    };
  },
  leak() {
    const layers = [
      layer("conv1", "Conv2D", [3, 3, 1, 16], 16),
      layer("conv2", "Conv2D", [3, 3, 16, 32], 32),
      layer("dense", "Dense", [512, 64], 64),
      layer("logits", "Dense", [64, 10], 10),
    ];
    const steps = range(300, 1, 1);
    return {
      runs: [
        run("dense", "dense", layers, steps, { every: 1 }),
        run("frozen", "freeze", layers, steps, { every: 1 }),
        run("frozen_leaky", "leak", layers, steps, { every: 1, closed: false, silent: true }),
        run("other_seed", "prune", layers, range(90, 2, 1), { every: 2, origin: "aaaa0000", past: "epoch" }),
      ],
    };
  },
  masks() {
    const layers = [
      layer("conv1", "Conv2D", [3, 3, 1, 16], 16),
      layer("block/conv2", "Conv2D", [3, 3, 16, 32], 32),
      layer("block/conv3", "Conv2D", [3, 3, 32, 32], 32),
      layer("logits", "Dense", [64, 10], 10),
    ];
    const steps = range(120, 10, 10);
    return {
      runs: ["dense", "ticket", "half_frozen", "drift"].map((kind) => run(kind, kind, layers, steps, { every: 10 })),
    };
  },
  /** Two runs whose networks differ in a layer. */
  pair() {
    const [conv1, conv2] = [layer("conv1", "Conv2D", [3, 3, 1, 16], 16), layer("conv2", "Conv2D", [3, 3, 16, 32], 32)];
    const [old, head] = [layer("logits", "Dense", [64, 10], 10), layer("head/logits", "Dense", [64, 12], 12)];
    return {
      runs: [
        run("ticket", "ticket", [conv1, conv2, old], range(60, 10, 10), { every: 10 }),
        run("drift", "drift", [conv1, conv2, head], range(90, 5, 10), { every: 5, past: "epoch" }),
      ],
    };
  },
  /** Each reason for which two runs can't be compared. */
  odd() {
    const layers = [layer("conv1", "Conv2D", [3, 3, 1, 16], 16), layer("logits", "Dense", [64, 10], 10)];
    const steps = range(60, 10, 10);
    return {
      runs: [
        run("ticket", "ticket", layers, steps, { every: 10 }),
        run("drift", "drift", layers, steps, { every: 10 }),
        run("other_seed", "prune", layers, steps, { every: 10, origin: "aaaa0000" }),
        run("no_masks", "prune", layers, steps, { every: 10, masks: false }),
        run("late", "ticket", layers, range(60, 10, 900), { every: 10 }),
        run("narrow", "ticket", [layer("other", "Dense", [8, 4], 4)], steps, { every: 10 }),
      ],
    };
  },
  one() {
    return { runs: [run("only", "dense", [layer("dense", "Dense", [4, 1], 1)], [7], { every: 1 })] };
  },
  unborn() {
    return { runs: [run("unborn", "dense", [layer("dense", "Dense", [4, 3], 3)], [], { every: 1, closed: false })] };
  },
  empty() {
    return { runs: [], other: 3 };
  },
  big() {
    return {
      runs: [run("wide", "prune", [layer("wide", "Dense", [512, 4096], 4096)], range(1000, 10), { every: 10 })],
    };
  },
  many() {
    const widths = Array.from({ length: 300 }, (_, i) => (i === 150 ? 4096 : 64 + 64 * Math.floor(i / 75)));
    const layers = widths.map((width, i) =>
      layer(`stage${Math.floor(i / 30)}/block${Math.floor(i / 6) % 5}/conv${i % 6}`, "Conv2D", [3, 3, 8, width], width),
    );
    const kinds = ["dense", "freeze", "lottery", "prune", "rigl"];
    return {
      runs: Array.from({ length: 20 }, (_, i) =>
        run(`sweep/run_${String(i).padStart(2, "0")}`, kinds[i % 5], layers, range(1000, 10), {
          every: 10,
          probe: i === 4 ? "other" : true,
          past: i === 7 ? "epoch" : "previous",
          sampled: true,
        }),
      ),
    };
  },
  hostile() {
    const layers = [
      layer("<img src=x onerror=alert(1)>/a", "Dense", [4, 8], 8),
      layer("\"quoted\" & 'single'", "Dense", [8, 8], 8),
      layer("\u202eevil\u202c/עברית", "Dense", [8, 8], 8),
      layer("__proto__", "Dense", [8, 4], 4),
      layer("x".repeat(400), "Dense", [4, 4], 4),
    ];
    const steps = range(20, 1, 1);
    return {
      runs: ["<script>alert(1)</script>", "עברית/مرحبا", "a&b=c#d%2e%2e", `long_${"y".repeat(300)}`].map((name, i) =>
        run(name, ["dense", "prune", "leak", "freeze"][i], layers, steps, { probe: true }),
      ),
    };
  },
};

const cache = new Map();

export function cellsOf(scenario, r, info) {
  const key = `${scenario}\n${r.name}\n${info.id}`;
  let found = cache.get(key);
  if (!found) {
    const at = r.layers.indexOf(info) / Math.max(1, r.layers.length - 1);
    found = makeCells(r.kind, info, at, r.steps, r.steps[r.steps.length - 1] ?? 0, 7);
    markViolations(found, r, info);
    cache.set(key, found);
  }
  return found;
}

const account = (n) => ({ offered: n, shown: n, superseded: 0, thinned: 0, dropped: 0, unreadable: 0 });

/** Seconds of the first and the last record: a run that is open got its last one just now, unless it fell silent. */
function wallTime(r) {
  if (r.steps.length === 0) return null;
  const end = r.closed || r.silent ? 1.7e9 : Math.floor(Date.now() / 1000);
  return [end - 600, end];
}

export function index(data) {
  const networks = [...new Set(data.runs.map((r) => r.layers))];
  return {
    schema: 1,
    threshold: 1e-3,
    patience: 5,
    runs: data.runs.map((r) => ({
      name: r.name,
      tb_runs: [`${r.name}/pastnet.0001.3f9a2c1b`],
      network: networks.indexOf(r.layers),
      origin: r.origin,
      past: r.past,
      every: r.every,
      first_step: r.steps[0] ?? null,
      last_step: r.steps[r.steps.length - 1] ?? null,
      records: r.steps.length,
      closed: r.closed,
      wall_time: wallTime(r),
      lineages: [],
      account: account(r.steps.length),
      overhead: { training: 30 * r.steps.length, seconds: 0.24 * r.steps.length, bytes: 24_000 * r.steps.length },
      notes: [],
      skipped: [],
      source: "sink",
      probe: Boolean(r.probe),
    })),
    networks: networks.map((layers) => ({ layers })),
    other_runs: data.other ?? 0,
    warnings: [],
  };
}

/** The container of the contract. */
export function container(header, sections) {
  let offset = 0;
  const list = sections.map(([name, dtype, shape, array]) => {
    const own = { name, dtype, shape, offset };
    offset += Math.ceil(array.byteLength / 8) * 8;
    return own;
  });
  const json = Buffer.from(JSON.stringify({ ...header, sections: list }));
  const start = Math.ceil((4 + json.length) / 8) * 8;
  const out = Buffer.alloc(start + offset);
  out.writeUInt32LE(json.length, 0);
  json.copy(out, 4);
  sections.forEach(([, , , array], i) => {
    Buffer.from(array.buffer, array.byteOffset, array.byteLength).copy(out, start + list[i].offset);
  });
  return out;
}

/** Channels that stand for all of a layer in the overview of a run that is too large to be made. */
const SAMPLE = 8;

/** The overview of so few channels and records, with their counts scaled to the layer's. */
export function sampledRun(r, cols) {
  const steps = r.steps.filter((_, t) => t % Math.ceil(r.steps.length / cols) === 0);
  const layers = r.layers.map((info) => ({ ...info, channels: SAMPLE, scale: info.channels / SAMPLE }));
  return { ...r, name: `${r.name} ${cols}`, steps, layers, sampled: false };
}

export function overview(scenario, r, cols, th, first, last) {
  if (r.sampled) return overview(scenario, sampledRun(r, cols), cols, th, first, last);
  const T = r.steps.length;
  const own = Array.from(r.steps).flatMap((step, t) => (step >= first && step <= last ? [t] : []));
  const K = Math.min(own.length, cols);
  const starts = Array.from({ length: K }, (_, k) => own[Math.floor((k * own.length) / K)]);
  const endOf = (k) => starts[k + 1] ?? own[own.length - 1] + 1;
  const L = r.layers.length;
  const counts = new Uint32Array(L * K * 6);
  const violated = new Uint32Array(L * K);
  const mean = new Float32Array(L * K);
  const pruned = new Float64Array(L * K);
  r.layers.forEach((info, l) => {
    const cells = cellsOf(scenario, r, info);
    for (let k = 0; k < K; k++) {
      let sum = 0;
      let moving = 0;
      const lastOne = endOf(k) - 1;
      for (let c = 0; c < cells.channels; c++) {
        const { kept } = masksOf(r, info, cells, c, lastOne);
        pruned[l * K + k] += Math.round((1 - kept) * (info.weights / info.channels));
      }
      for (let c = 0; c < cells.channels; c++) {
        const byte = cells.state[c * T + starts[k]];
        counts[(l * K + k) * 6 + (byte & 7)] += info.scale ?? 1;
        if (byte & VIOLATED) violated[l * K + k] += info.scale ?? 1;
        if ((byte & 7) === 1) {
          moving++;
          sum += Math.min(1, 2 ** (cells.delta[c * T + starts[k]] / 16));
        }
      }
      mean[l * K + k] = moving > 0 ? sum / moving : Number.NaN;
    }
  });
  const firsts = Float64Array.from(starts, (t) => r.steps[t]);
  const lasts = Float64Array.from(starts, (_, k) => r.steps[endOf(k) - 1]);
  return container(
    {
      schema: 1,
      run: r.name,
      threshold: th,
      patience: 5,
      past: r.past,
      layers: r.layers.map((x) => x.id),
      accounts: r.layers.map(() => account(T)),
      prunable: r.layers.map((x) => x.weights),
      notes: [],
    },
    [
      ["first_steps", "f8", [K], firsts],
      ["steps", "f8", [K], lasts],
      ["wall_times", "f8", [K], lasts],
      ["learning_rates", "f4", [K], new Float32Array(K).fill(0.1)],
      ["counts", "u4", [L, K, 6], counts],
      ["violated", "u4", [L, K], violated],
      ["nonfinite", "u4", [L, K], new Uint32Array(L * K)],
      ["mean_delta", "f4", [L, K], mean],
      ["pruned", "f8", [L, K], pruned],
    ],
  );
}

export const functionOf = (scenario, r) => functionAnswer(r, (info) => cellsOf(scenario, r, info));

export function layerAnswer(scenario, r, info, th) {
  const cells = cellsOf(scenario, r, info);
  const T = r.steps.length;
  const last = r.steps[T - 1] ?? 0;
  const past = Float64Array.from(r.steps, (s) => Math.max(0, s - r.every));
  return container(
    {
      schema: 1,
      run: r.name,
      layer: info.id,
      variable: info.variable,
      role: "kernel",
      shape: info.shape,
      axis: "-1",
      verified: true,
      channels: info.channels,
      elements: info.weights / info.channels,
      threshold: th,
      patience: 5,
      past: r.past,
      account: account(T),
      events:
        T > 4
          ? [
              ...maskEvents(r, info, cells),
              { step: Math.round(last / 2), kind: "learning_rate", text: "lr ÷10" },
              { step: Math.round(last * 0.75), kind: "learning_rate", text: "lr ÷10" },
            ]
          : [],
    },
    [
      ["steps", "f8", [T], r.steps],
      ["past_steps", "f8", [T], past],
      ["wall_times", "f8", [T], r.steps],
      ["learning_rates", "f4", [T], new Float32Array(T).fill(0.1)],
      ...cellSections(cells),
    ],
  );
}

export function channelAnswer(scenario, r, info, channel, _th) {
  const cells = cellsOf(scenario, r, info);
  const T = r.steps.length;
  const row = channel * T;
  const state = Array.from({ length: T }, (_, t) => NAMES[cells.state[row + t] & 7]);
  const rel = Array.from({ length: T }, (_, t) =>
    cells.delta[row + t] === -32768 ? 0 : 2 ** (cells.delta[row + t] / 16),
  );
  const norm = rel.map((_, t) => (state[t] === "pruned" ? 0 : 0.87 + 0.2 * (t / T)));
  const changes = [];
  for (let t = 1; t < T; t++)
    if (state[t] !== state[t - 1]) changes.push({ step: r.steps[t], from: state[t - 1], to: state[t] });
  return {
    schema: 1,
    run: r.name,
    layer: info.id,
    variable: info.variable,
    channel,
    precision: 0.022,
    steps: [...r.steps],
    past_steps: [...r.steps].map((s) => Math.max(0, s - r.every)),
    state,
    violated: state.map((_, t) => (cells.state[row + t] & VIOLATED) !== 0),
    relative_delta: rel,
    norm,
    past_norm: norm,
    delta_norm: rel.map((v, t) => v * norm[t]),
    delta_max: rel.map((v) => v / 10),
    changed: rel.map((v) => (v > 0 ? 1 : 0)),
    nonfinite: rel.map(() => 0),
    kept: state.map((_, t) => masksOf(r, info, cells, channel, t).kept),
    trainable: state.map((_, t) => masksOf(r, info, cells, channel, t).trainable),
    changes,
    violations: violationsOf(r, info).filter((entry) => entry.channel === channel),
  };
}

export function violationsAnswer(r) {
  const all = r.layers.flatMap((info) => violationsOf(r, info)).sort((a, b) => a.first_step - b.first_step);
  return { schema: 1, run: r.name, total: all.length, violations: all.slice(0, 4096) };
}
