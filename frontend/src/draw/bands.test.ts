import { describe, expect, it } from "vitest";
import { type Cells, deltaAt } from "../data/cells";
import { listed } from "../data/fixtures";
import { levelOf, levelTable } from "../data/scale";
import { FROZEN, MOVING, NONFINITE, REACTIVATED, STATES, VIOLATED } from "../data/states";
import { axisEnd } from "../data/steps";
import type { Mode } from "../data/urlstate";
import { bandsOf } from "./bands";
import { drawCells } from "./heatmap";
import { makeRaster, statePixel } from "./raster";
import { LIGHT, pixelsOf } from "./theme";

const THRESHOLD = 1e-4;
const pixels = pixelsOf(LIGHT);

/** Numbers from 0 to 1, the same each time. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Cells in which states come in runs, as in training, or at random. */
function someCells(next: () => number, channels: number, records: number, calm: number): Cells {
  const state = new Uint8Array(channels * records);
  const deltas: number[] = [];
  for (let at = 0; at < state.length; at++) {
    const changes = at % records === 0 || next() > calm;
    state[at] = changes ? Math.floor(next() * STATES) : state[at - 1] & 7;
    // It takes a pixel over: were it as frequent as the others, little else would be seen.
    if (state[at] === NONFINITE && next() < 0.9) state[at] = FROZEN;
    if (next() < 0.01) state[at] |= VIOLATED;
    deltas.push(next() < 0.2 ? 0 : 2 ** (-Math.floor(next() * 300) / 16));
  }
  const steps = Float64Array.from({ length: records }, (_, t) => 10 * t + Math.floor(9 * next()));
  const [none, rates] = [steps, new Float32Array(records)];
  const header = {} as Cells["header"];
  const end = axisEnd(steps, steps);
  return {
    header,
    channels,
    records,
    steps,
    pastSteps: none,
    wallTimes: none,
    learningRates: rates,
    end,
    state,
    ...listed(deltas),
  };
}

interface Under {
  cells: Cells;
  rows: number[];
  records: number[];
}

const cellsUnder = ({ cells, rows, records }: Under): number[] =>
  records.flatMap((t) => rows.map((row) => row * cells.records + t));

const has = (under: Under | null, mark: number): boolean =>
  under !== null && cellsUnder(under).some((i) => under.cells.state[i] & mark);

/** By sorting: nonfinite, then reactivated, else the most frequent state, ties to the latest record's lowest row. */
function stateOf(under: Under): number {
  const { cells, rows, records } = under;
  const states = cellsUnder(under).map((i) => cells.state[i] & 7);
  if (states.includes(NONFINITE)) return NONFINITE;
  if (states.includes(REACTIVATED)) return REACTIVATED;
  const often = (state: number) => states.filter((other) => other === state).length;
  const most = Math.max(...states.map(often));
  const last = rows.map((row) => cells.state[row * cells.records + records[records.length - 1]] & 7).reverse();
  const lowest = [...states].sort((a, b) => a - b).find((state) => often(state) === most) as number;
  return last.find((one) => often(one) === most) ?? lowest;
}

/** The colour of the cells of some rows and records, beside those of the pixel to the left. */
function expected(under: Under, left: Under | null, mode: Mode, x: number, y: number): number {
  if (has(under, VIOLATED) && (!has(left, VIOLATED) || (x + y) % 3 === 0)) return pixels.violated;
  const { cells } = under;
  const [at, state] = [cellsUnder(under), stateOf(under)];
  const counted = mode === "delta" ? at : at.filter((i) => (cells.state[i] & 7) === MOVING);
  const level = Math.max(0, ...counted.map((i) => levelOf(deltaAt(cells, i), THRESHOLD)));
  if ((mode === "delta" && state !== 0 && state !== NONFINITE) || (mode === "both" && state === MOVING))
    return pixels.movement[level];
  return statePixel(pixels, state, x, y, 1);
}

/** Each pixel of a picture against what lies under it. */
function compare(
  cells: Cells,
  order: Uint32Array,
  width: number,
  height: number,
  mode: Mode,
  from: number,
  to: number,
) {
  const raster = makeRaster(width, height, 1);
  drawCells(
    { raster, x: 0, y: 0, width, height },
    cells,
    order,
    { from, to, width },
    { mode, threshold: THRESHOLD, pixels },
  );
  for (let y = 0; y < height; y++) {
    const first = Math.floor((y * order.length) / height);
    const rows = [...order.subarray(first, Math.max(first + 1, Math.floor(((y + 1) * order.length) / height)))];
    let left: Under | null = null;
    for (let x = 0; x < width; x++) {
      const [s0, s1] = [x, x + 1].map((pixel) => from + (pixel / width) * (to - from));
      const under = [...cells.steps.keys()].filter((t) => cells.steps[t] >= s0 && cells.steps[t] < s1);
      const before = [...cells.steps.keys()].filter((t) => cells.steps[t] < s0);
      const held = before.length > 0 && s0 < cells.end ? before.slice(-1) : [];
      const records = under.length > 0 ? under : held;
      const own: Under | null = records.length > 0 ? { cells, rows, records } : null;
      const pixel = own ? expected(own, left, mode, x, y) : statePixel(pixels, 0, x, y, 1);
      left = own;
      if (raster.data[y * width + x] !== pixel) return `pixel ${x}, ${y} of ${width} × ${height}, ${mode}`;
    }
  }
  return null;
}

describe("bands", () => {
  it("draw exactly what lies under each pixel, at any size, order and zoom", () => {
    const next = generator(11);
    const upTo = (most: number) => 1 + Math.floor(next() * most);
    for (let round = 0; round < 20; round++) {
      const cells = someCells(next, upTo(40), upTo(40), round % 3 === 0 ? 0 : 0.9);
      const order = Uint32Array.from({ length: cells.channels }, (_, c) => c).sort(() => next() - 0.5);
      // Rows of five pixels and more have an outline instead.
      const height = Math.min(upTo(40), 4 * cells.channels);
      const from = next() < 0.5 ? 0 : Math.floor(next() * cells.end);
      const to = from + upTo(Math.max(2, cells.end));
      for (const mode of ["state", "both", "delta"] as const) {
        expect(compare(cells, order, upTo(40), height, mode, from, to)).toBeNull();
        // The second picture of the same rows is made of what the first has kept.
        expect(compare(cells, order, upTo(40), height, mode, 0, cells.end)).toBeNull();
      }
    }
  });

  it("count more than 255 rows in one", () => {
    const cells = someCells(generator(3), 700, 3, 0.9);
    const order = Uint32Array.from({ length: 700 }, (_, c) => c);
    expect(compare(cells, order, 3, 2, "both", 0, cells.end)).toBeNull();
  });

  it("draw a log that is too long to be kept as one that isn't", () => {
    const records = 2_200_000;
    const state = new Uint8Array(2 * records).fill(FROZEN);
    state[records + 5] |= VIOLATED;
    const steps = new Float64Array(records).map((_, t) => t);
    const small = someCells(generator(3), 2, 1, 0.9);
    const cells = { ...small, records, steps, end: records, state, delta: new Uint8Array(2 * records) };
    const order = Uint32Array.of(1, 0);
    const raster = makeRaster(1, 2, 1);
    const style = { mode: "state" as const, threshold: THRESHOLD, pixels };
    expect(bandsOf(cells, order, 2, 0, levelTable(cells.values, THRESHOLD), false).end).toBe(1);
    drawCells({ raster, x: 0, y: 0, width: 1, height: 2 }, cells, order, { from: 0, to: records, width: 1 }, style);
    expect(Array.from(raster.data)).toEqual([pixels.violated, pixels.states[FROZEN]]);
  });
});
