import { describe, expect, it } from "vitest";
import type { FunctionSeries } from "../data/function";
import { FROZEN, MOVING, QUIET } from "../data/states";
import type { FunctionHeader } from "../server/types";
import { distance, VISIONS } from "./colour.fixtures";
import { LANE, trendPieces, trendY } from "./lines";
import { makeRaster } from "./raster";
import { LABEL_HEIGHT, notable, placeLabels, STILL, scatterX, scatterY, spotOf } from "./scatter";
import { blend, DARK, LIGHT, pack, pixelsOf } from "./theme";
import { drawChanges } from "./valuerow";

const pixels = pixelsOf(LIGHT);
const axis = { log: true, low: -4, high: 0 };
const { NaN: NONE, POSITIVE_INFINITY: INFINITE } = Number;

function painted(values: number[], width: number): number[] {
  const series = {
    header: { places: [{}], measures: ["relative"] } as unknown as FunctionHeader,
    steps: Float64Array.from(values, (_, t) => t),
    end: values.length,
    values: Float32Array.from(values),
  } as FunctionSeries;
  const raster = makeRaster(width, 1, 1);
  const scale = { from: 0, to: values.length, width };
  drawChanges({ raster, x: 0, y: 0, width, height: 1 }, series, 0, scale, { change: "relative", axis, pixels });
  return Array.from(raster.data);
}

const tint = (place: number) => pack(blend(LIGHT.movement, place));

describe("cells", () => {
  it("tints on the scale; zero has its own colour, infinity the top's", () => {
    expect(painted([1e-4, 0.01, 1, 0, INFINITE], 5)).toEqual([
      tint(0),
      expect.closeTo(tint(0.5), -6),
      tint(1),
      pack(LIGHT.states[QUIET]),
      tint(1),
    ]);
  });

  it("dots what isn't known, also beyond the records", () => {
    expect(painted([NONE, 0, NONE, NONE, NONE], 5)).toEqual([pixels.dot, pack(LIGHT.states[QUIET]), 0, 0, pixels.dot]);
  });

  it("pools by the largest value under a pixel", () => {
    expect(painted([0, 1, NONE, 0, NONE, NONE, 1e-4, 0], 4)).toEqual([tint(1), pack(LIGHT.states[QUIET]), 0, tint(0)]);
  });

  it.each([LIGHT, DARK])("keeps zero apart from every tint in each kind of sight", (theme) => {
    for (const vision of VISIONS) {
      for (let i = 0; i <= 20; i++) {
        expect(distance(theme.states[QUIET], blend(theme.movement, i / 20), vision)).toBeGreaterThanOrEqual(14);
      }
    }
  });
});

describe("lines", () => {
  const height = 100 + LANE;
  const trend = (values: number[]) => ({
    steps: Float64Array.from(values, (_, t) => t),
    values: Float64Array.from(values),
    color: "",
    shape: 0,
    bold: false,
  });

  it("are logarithmic above a lane of zeros, where each run has its own height", () => {
    expect([1, 0.01, 1e-4, 1e-9, INFINITE].map((value) => trendY(axis, value, height, 0, 1))).toEqual([
      0, 50, 100, 100, 0,
    ]);
    const zeros = [0, 1, 2].map((at) => trendY(axis, 0, height, at, 3));
    expect(Math.min(...zeros)).toBeGreaterThan(100);
    expect(Math.max(...zeros)).toBeLessThanOrEqual(height);
    expect(new Set(zeros).size).toBe(3);
  });

  it("put a share of 0 on the axis itself", () => {
    expect(trendY({ log: false, low: 0, high: 0.5 }, 0, height, 2, 3)).toBe(height);
    expect(trendY({ log: false, low: 0, high: 0.5 }, 0.25, height, 2, 3)).toBe(height / 2);
  });

  it("break at what is unknown, and between zero and the decades", () => {
    const scale = { from: 0, to: 8, width: 80 };
    const pieces = trendPieces(trend([1, 1, NONE, 1, 0, 0, 1, INFINITE]), axis, scale, height, 0, 1);
    expect(pieces.map((piece) => piece.map(([x]) => x))).toEqual([[0, 10], [30], [40, 50], [60, 70]]);
    const shares = trendPieces(trend([0.1, 0, 0.1]), { log: false, low: 0, high: 0.1 }, scale, height, 0, 1);
    expect(shares).toEqual([
      [
        [0, 0],
        [10, height],
        [20, 0],
      ],
    ]);
  });
});

describe("scatter", () => {
  const frame = { width: 246, height: 246, x: axis, y: axis };
  const move = (weights: number, output: number, layer = "a") => ({
    layer,
    weights,
    output,
    state: weights ? MOVING : FROZEN,
  });

  it("is log by log, with lanes for what stands still", () => {
    expect(spotOf(frame, move(1e-4, 1e-4))).toEqual([38, 208]);
    expect(spotOf(frame, move(1, 1))).toEqual([238, 8]);
    expect(spotOf(frame, move(0.01, INFINITE))).toEqual([138, 8]);
    expect([scatterX(frame, 0), scatterY(frame, 0)]).toEqual([STILL / 2, frame.height - STILL / 2]);
    expect([spotOf(frame, move(NONE, 1)), spotOf(frame, move(1, NONE))]).toEqual([null, null]);
  });

  it("labels first what changed by others' doing, last what stands still in both", () => {
    const moves = [
      move(0.1, 0.9, "large"),
      move(0, 1e-5, "carried"),
      move(0, 0, "still"),
      move(0, 0.1, "more"),
      move(1, 0.2, "small"),
    ];
    expect([...moves].sort((a, b) => notable(b) - notable(a)).map(({ layer }) => layer)).toEqual([
      "more",
      "carried",
      "large",
      "small",
      "still",
    ]);
  });

  it("puts labels where they cover neither each other nor a dot", () => {
    // A crowd by a fixed recurrence: many more than there is room for.
    let state = 7;
    const next = () => {
      state = (state * 16807) % 2147483647;
      return state / 2147483647;
    };
    const dots = Array.from({ length: 60 }, (): [number, number] => [20 + 200 * next(), 20 + 200 * next()]);
    const wanted = dots.map((spot, i) => ({ layer: `layer${i}`, spot, width: 40 }));
    const labels = placeLabels(frame, wanted, dots, 12);
    expect(labels.length).toBeGreaterThan(2);
    expect(labels.length).toBeLessThanOrEqual(12);
    const inside = (x: number, y: number, label: (typeof labels)[number]) =>
      x > label.left && x < label.left + label.width && y > label.top && y < label.top + LABEL_HEIGHT;
    for (const label of labels) {
      expect(label.left).toBeGreaterThanOrEqual(0);
      expect(label.left + label.width).toBeLessThanOrEqual(frame.width);
      expect(dots.some(([x, y]) => inside(x, y, label))).toBe(false);
      for (const other of labels) {
        if (other === label) continue;
        const apart = Math.abs(other.top - label.top) >= LABEL_HEIGHT || Math.abs(other.left - label.left) >= 40;
        expect(apart).toBe(true);
      }
    }
  });

  it("leaves nothing of few layers without a label", () => {
    const dots: [number, number][] = [
      [50, 50],
      [60, 120],
      [230, 60],
    ];
    const labels = placeLabels(
      frame,
      dots.map((spot, i) => ({ layer: `l${i}`, spot, width: 60 })),
      dots,
      7,
    );
    expect(labels.map(({ layer }) => layer)).toEqual(["l0", "l1", "l2"]);
    expect(labels[2].left + 60).toBeLessThan(230);
  });
});
