import { describe, expect, it } from "vitest";
import type { Cells } from "../data/cells";
import { listed } from "../data/fixtures";
import { FROZEN, MOVING, NONFINITE, PRUNED, QUIET, REACTIVATED, STATES, VIOLATED } from "../data/states";
import { axisEnd } from "../data/steps";
import type { Columns } from "./columns";
import { drawBars, drawCells } from "./heatmap";
import { stepCorners } from "./lines";
import { makeRaster, type Raster, wholeOf } from "./raster";
import { drawLayerStrip, drawStrip } from "./strip";
import { LIGHT, pixelsOf } from "./theme";

const pixels = pixelsOf(LIGHT);
const column = (raster: Raster, x: number) =>
  Array.from({ length: raster.height }, (_, y) => raster.data[y * raster.width + x]);

function cells(state: number[][], delta: number[][]): Cells {
  const records = state[0].length;
  const steps = Float64Array.from({ length: records }, (_, t) => t);
  return {
    header: {} as Cells["header"],
    channels: state.length,
    records,
    steps,
    pastSteps: steps,
    learningRates: new Float32Array(records),
    wallTimes: steps,
    end: axisEnd(steps, steps),
    state: Uint8Array.from(state.flat()),
    ...listed(delta.flat()),
  };
}

const paint = (data: Cells, width: number, height: number, mode: "state" | "both" | "delta" = "state") => {
  const raster = makeRaster(width, height, 1);
  const rows = Uint32Array.from({ length: data.channels }, (_, c) => c);
  drawCells(wholeOf(raster), data, rows, { from: 0, to: data.end, width }, { mode, threshold: 1e-4, pixels });
  return raster;
};

describe("heatmap", () => {
  const two = cells(
    [
      [MOVING, QUIET],
      [MOVING, FROZEN],
    ],
    [
      [1, 0],
      [2 ** -20, 0],
    ],
  );

  it("draws each cell in its colour", () => {
    const raster = paint(two, 2, 2);
    expect(Array.from(raster.data)).toEqual([
      pixels.states[MOVING],
      pixels.states[QUIET],
      pixels.states[MOVING],
      pixels.states[FROZEN],
    ]);
  });

  it("tints moving cells from the threshold to 1, and pools delta by the largest", () => {
    const raster = paint(two, 2, 2, "both");
    expect([raster.data[0], raster.data[2]]).toEqual([pixels.movement[255], pixels.movement[0]]);
    expect(paint(two, 2, 1, "both").data[0]).toBe(pixels.movement[255]);
  });

  it("pools states by majority, ties to the latest", () => {
    const many = cells(
      [
        [FROZEN, FROZEN, QUIET],
        [QUIET, FROZEN, QUIET],
      ],
      [
        [0, 0, 0],
        [0, 0, 0],
      ],
    );
    expect(paint(many, 1, 1).data[0]).toBe(pixels.states[QUIET]);
    const most = cells([[FROZEN, FROZEN, QUIET]], [[0, 0, 0]]);
    expect(paint(most, 1, 1).data[0]).toBe(pixels.states[FROZEN]);
  });

  it("never loses a violation to pooling", () => {
    const state = Array.from({ length: 50 }, (_, c) =>
      Array.from({ length: 40 }, (_, t) => (c === 33 && t === 21 ? FROZEN | VIOLATED : FROZEN)),
    );
    const raster = paint(
      cells(
        state,
        state.map((row) => row.map(() => 0)),
      ),
      4,
      5,
    );
    expect(Array.from(raster.data).filter((pixel) => pixel === pixels.violated)).toHaveLength(1);
  });

  it("outlines a tall violated row and keeps its state inside", () => {
    const raster = paint(cells([[FROZEN | VIOLATED]], [[0]]), 1, 9);
    const own = column(raster, 0);
    expect([own[0], own[4], own[8]]).toEqual([pixels.violated, pixels.states[FROZEN], pixels.violated]);
  });

  it("bears 4,096 channels and one", () => {
    const wide = cells(
      Array.from({ length: 4096 }, () => [PRUNED]),
      Array.from({ length: 4096 }, () => [0]),
    );
    expect(paint(wide, 3, 7).data.every((pixel) => pixel !== 0)).toBe(true);
    expect(paint(cells([[MOVING]], [[1]]), 3, 7).data.every((pixel) => pixel === pixels.states[MOVING])).toBe(true);
  });
});

describe("strip", () => {
  /** Columns of parts by state code, a pixel each. */
  const columnsOf = (shares: number[][], marks: number[], meanDelta: number[]): Columns => ({
    starts: Float64Array.from(shares, (_, j) => j),
    end: shares.length,
    shares: Float64Array.from(shares.flat()),
    marks: Uint8Array.from(marks),
    meanDelta: Float64Array.from(meanDelta),
    pruned: null,
    channels: 4,
    prunable: 0,
  });
  const drawn = (columns: Columns | null, width: number, height: number) => {
    const raster = makeRaster(width, height, 1);
    drawStrip(wholeOf(raster), columns, { from: 0, to: columns?.end ?? 2, width }, 1e-4, pixels);
    return raster;
  };
  const [MOVES, CALMS, FREEZES] = [MOVING, QUIET, FROZEN].map((state) =>
    Array.from({ length: STATES }, (_, other) => Number(other === state)),
  );

  it("stacks shares from the bottom, and marks a violation on top", () => {
    const raster = drawn(columnsOf([[0, 1, 0, 0, 1, 0, 0, 0], CALMS], [VIOLATED, 0], [1, Number.NaN]), 2, 10);
    const own = column(raster, 0);
    expect(own.slice(5)).toEqual(Array(5).fill(pixels.movement[255]));
    expect(own.slice(2, 5)).toEqual(Array(3).fill(pixels.states[FROZEN]));
    expect(own.slice(0, 2)).toEqual(Array(2).fill(pixels.violated));
    expect(new Set(column(raster, 1))).toEqual(new Set([pixels.states[QUIET]]));
  });

  it("draws what is nonfinite at the bottom, as high as a line of violations, which no pooling loses", () => {
    const rare = FREEZES.map((share, state) => (state === NONFINITE ? 1 : 999 * share));
    const raster = drawn(
      columnsOf(
        [rare, FREEZES, FREEZES, FREEZES, rare, FREEZES],
        [0, 1, 0, 0, 0, 0].map((on) => on * VIOLATED),
        Array(6).fill(Number.NaN),
      ),
      3,
      10,
    );
    const two = (pixel: number) => [pixel, pixel];
    const [frozen, nonfinite] = [FROZEN, NONFINITE].map((state) => pixels.states[state]);
    const flat = Array(6).fill(frozen);
    expect(column(raster, 0)).toEqual([...two(pixels.violated), ...flat, ...two(nonfinite)]);
    expect(column(raster, 1)).toEqual([...two(frozen), ...flat, ...two(frozen)]);
    expect(column(raster, 2)).toEqual([...two(frozen), ...flat, ...two(nonfinite)]);
    const whole = FREEZES.map((_, state) => Number(state === NONFINITE));
    expect(new Set(column(drawn(columnsOf([whole], [0], [Number.NaN]), 1, 10), 0))).toEqual(new Set([nonfinite]));
  });

  it("averages the columns under a pixel, tinted by the mean of what moves there", () => {
    // Of eight parts three move by 0.1 and one by 1e-4.
    const shares = [
      [0, 3, 0, 0, 1, 0, 0, 0],
      [0, 1, 0, 0, 3, 0, 0, 0],
    ];
    const own = column(drawn(columnsOf(shares, [0, 0], [0.1, 1e-4]), 1, 8), 0);
    const level = Math.round((255 * Math.log10((3 * 0.1 + 1e-4) / 4 / 1e-4)) / 3);
    expect(own).toEqual([...Array(4).fill(pixels.states[FROZEN]), ...Array(4).fill(pixels.movement[level])]);
  });

  it("keeps a pixel of what is reactivated, from the tallest of the others", () => {
    const rare = [0, 300, 1, 0, 699, 0, 0, 0];
    const own = column(drawn(columnsOf([rare], [0], [1e-9]), 1, 10), 0);
    expect(own).toEqual([
      ...Array(6).fill(pixels.states[FROZEN]),
      pixels.states[REACTIVATED],
      ...Array(3).fill(pixels.movement[0]),
    ]);
    // Where little moves there is more than that of it.
    const most = column(drawn(columnsOf([[0, 699, 1, 0, 300, 0, 0, 0]], [0], [1e-9]), 1, 10), 0);
    expect(most).toEqual([
      ...Array(3).fill(pixels.states[FROZEN]),
      pixels.states[REACTIVATED],
      ...Array(6).fill(pixels.movement[0]),
    ]);
    expect(column(drawn(columnsOf([MOVES], [0], [1e-9]), 1, 4), 0)).toEqual(Array(4).fill(pixels.movement[0]));
  });

  it("dots what isn't recorded", () => {
    const raster = drawn(null, 8, 8);
    expect(new Set(raster.data)).toEqual(new Set([0, pixels.dot]));
  });

  it("draws a layer by its records", () => {
    const data = cells(
      [
        [MOVING, FROZEN],
        [QUIET, FROZEN | VIOLATED],
      ],
      [
        [1, 0],
        [0, 0],
      ],
    );
    const raster = makeRaster(2, 4, 1);
    const scale = { from: 0, to: 2, width: 2 };
    const header = { threshold: 1e-4 } as Cells["header"];
    drawLayerStrip(wholeOf(raster), { ...data, header }, scale, pixels);
    const [quiet, frozen] = [pixels.states[QUIET], pixels.states[FROZEN]];
    expect(column(raster, 0)).toEqual([quiet, quiet, pixels.movement[255], pixels.movement[255]]);
    expect(column(raster, 1)).toEqual([pixels.violated, frozen, frozen, frozen]);
  });
});

it("draws bars as long as the delta is, and none at zero", () => {
  const raster = makeRaster(100, 2, 1);
  const data = cells([[MOVING], [QUIET]], [[1], [0]]);
  drawBars(wholeOf(raster), data, Uint32Array.of(0, 1), 0, 1e-4, pixels);
  expect(Array.from(raster.data.subarray(0, 100)).every((pixel) => pixel === pixels.movement[255])).toBe(true);
  expect(Array.from(raster.data.subarray(100)).every((pixel) => pixel === 0)).toBe(true);
});

describe("step lines", () => {
  const scale = { from: 0, to: 40, width: 40 };
  const line = (...values: number[]) => ({
    steps: Float64Array.from(values, (_, i) => 10 * i),
    values: Float64Array.from(values),
    dashed: false,
  });

  it("keep a value until the next record, and the last one to the end", () => {
    expect(stepCorners(line(1, 0.25), 20, scale, 100)).toEqual([
      [
        [0, 0],
        [10, 0],
        [10, 75],
        [20, 75],
      ],
    ]);
  });

  it("break where nothing is known, and are none without a record", () => {
    expect(stepCorners(line(0, Number.NaN, 1), 30, scale, 100)).toEqual([
      [
        [0, 100],
        [10, 100],
      ],
      [
        [20, 0],
        [30, 0],
      ],
    ]);
    expect(stepCorners(line(), 0, scale, 100)).toEqual([]);
  });
});
