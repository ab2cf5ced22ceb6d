import { expect, it } from "vitest";
import type { Cells } from "../data/cells";
import { differenceCells } from "../data/difference";
import { listed } from "../data/fixtures";
import { FROZEN, MOVING, PRUNED, VIOLATED } from "../data/states";
import type { Columns } from "./columns";
import { differenceStyle } from "./difference";
import { drawCells } from "./heatmap";
import { makeRaster } from "./raster";
import { divergingPixel, LIGHT, pixelsOf } from "./theme";
import { drawStripDifference } from "./valuerow";

const pixels = pixelsOf(LIGHT);
/** The power of ten that is 0. */
const NONE = Number.NEGATIVE_INFINITY;

function columns(starts: number[], moving: number[]): Columns {
  return {
    starts: Float64Array.from(starts),
    end: starts[starts.length - 1] + 1,
    shares: Float64Array.from(moving.flatMap((count) => [0, count, 0, 0, 4 - count, 0, 0, 0])),
    marks: new Uint8Array(starts.length),
    meanDelta: new Float64Array(starts.length),
    pruned: null,
    channels: 4,
    prunable: 0,
  };
}

it("colours a strip by the difference at the same steps, dotted where one has none", () => {
  const raster = makeRaster(4, 1, 1);
  const box = { x: 0, y: 0, width: 4, height: 1 };
  const scale = { from: 0, to: 4, width: 4 };
  drawStripDifference(
    { raster, ...box },
    columns([0, 1, 2], [4, 2, 3]),
    columns([0, 2], [4, 4]),
    "moving",
    scale,
    pixels,
  );
  expect(Array.from(raster.data)).toEqual([
    divergingPixel(pixels, 0),
    divergingPixel(pixels, -Math.SQRT1_2),
    divergingPixel(pixels, -0.5),
    0,
  ]);
  drawStripDifference({ raster, ...box }, columns([0], [4]), null, "moving", scale, pixels);
  expect(Array.from(raster.data)).toEqual([pixels.dot, 0, 0, 0]);
});

it("colours cells by the distance of deltas, by the state where it differs, and marks violations", () => {
  const steps = Float64Array.of(0);
  const one = (state: number[], delta: number[]): Cells => ({
    header: {} as Cells["header"],
    channels: state.length,
    records: 1,
    steps,
    pastSteps: steps,
    learningRates: new Float32Array(1),
    wallTimes: steps,
    end: 1,
    state: Uint8Array.from(state),
    ...listed(delta.map((decade) => 10 ** decade)),
  });
  const own = one([MOVING, MOVING, MOVING, FROZEN, FROZEN | VIOLATED], [-1.5, -5, -1, NONE, -1.4]);
  const base = one([MOVING, MOVING, PRUNED, FROZEN, MOVING], [-5, -1.5, NONE, NONE, -1]);
  const raster = makeRaster(1, 5, 1);
  const rows = Uint32Array.of(0, 1, 2, 3, 4);
  const scale = { from: 0, to: 1, width: 1 };
  drawCells(
    { raster, x: 0, y: 0, width: 1, height: 5 },
    differenceCells(own, base),
    rows,
    scale,
    differenceStyle(LIGHT),
  );
  expect(Array.from(raster.data)).toEqual([
    divergingPixel(pixels, 1),
    divergingPixel(pixels, -1),
    pixels.states[MOVING],
    divergingPixel(pixels, 0),
    pixels.violated,
  ]);
});
