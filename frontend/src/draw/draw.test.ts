import { describe, expect, it } from "vitest";
import type { Cells } from "../data/cells";
import { listed } from "../data/fixtures";
import { axisEnd, type Series } from "../data/series";
import { FROZEN, MOVING, PRUNED, SETTLED, STATES, VIOLATED } from "../data/states";
import { drawBars } from "./bars";
import { drawCells } from "./heatmap";
import { makeRaster, type Raster } from "./raster";
import { stepCorners } from "./shares";
import { drawStrip } from "./strip";
import { LIGHT, pixelsOf } from "./theme";

const pixels = pixelsOf(LIGHT);
const whole = (raster: Raster) => ({ x: 0, y: 0, width: raster.width, height: raster.height });
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
  drawCells(raster, whole(raster), data, rows, { from: 0, to: data.end, width }, { mode, threshold: 1e-4, pixels });
  return raster;
};

describe("heatmap", () => {
  const two = cells(
    [
      [MOVING, SETTLED],
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
      pixels.states[SETTLED],
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
        [FROZEN, FROZEN, SETTLED],
        [SETTLED, FROZEN, SETTLED],
      ],
      [
        [0, 0, 0],
        [0, 0, 0],
      ],
    );
    expect(paint(many, 1, 1).data[0]).toBe(pixels.states[SETTLED]);
    const most = cells([[FROZEN, FROZEN, SETTLED]], [[0, 0, 0]]);
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
  const series: Series = {
    starts: Float64Array.of(0, 1),
    ends: Float64Array.of(0, 1),
    end: 2,
    counts: Float64Array.of(0, 1, 0, 0, 1, 0, /* */ 0, 0, 0, 4, 0, 0),
    violated: Float64Array.of(1, 0),
    nonfinite: new Float64Array(2),
    meanDelta: Float64Array.of(1, Number.NaN),
    channels: 4,
    pruned: null,
    prunable: 0,
  };

  it("stacks shares from the bottom, and marks a violation on top", () => {
    const raster = makeRaster(2, 10, 1);
    drawStrip(raster, whole(raster), series, { from: 0, to: 2, width: 2 }, 1e-4, pixels);
    const own = column(raster, 0);
    expect(own.slice(5)).toEqual(Array(5).fill(pixels.movement[255]));
    expect(own.slice(2, 5)).toEqual(Array(3).fill(pixels.states[FROZEN]));
    expect(own.slice(0, 2)).toEqual(Array(2).fill(pixels.violated));
    expect(new Set(column(raster, 1))).toEqual(new Set([pixels.states[SETTLED]]));
  });

  it("dots what isn't recorded", () => {
    const raster = makeRaster(8, 8, 1);
    drawStrip(raster, whole(raster), null, { from: 0, to: 2, width: 8 }, 1e-4, pixels);
    expect(new Set(raster.data)).toEqual(new Set([0, pixels.dot]));
    expect(series.counts).toHaveLength(2 * STATES);
  });
});

it("draws bars as long as the delta is, and none at zero", () => {
  const raster = makeRaster(100, 2, 1);
  const data = cells([[MOVING], [SETTLED]], [[1], [0]]);
  drawBars(raster, whole(raster), data, Uint32Array.of(0, 1), 0, 1e-4, pixels);
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
