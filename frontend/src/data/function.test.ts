import { describe, expect, it } from "vitest";
import type { Container } from "../server/container";
import type { FunctionHeader } from "../server/types";
import {
  changeAt,
  changeAxis,
  changeOf,
  changePlace,
  changeTicks,
  decadesOf,
  type FunctionSeries,
  formatChange,
  largestOf,
  measuresAt,
  placeKey,
  probedAt,
  probeText,
  readFunction,
} from "./function";

const { NaN: NONE, POSITIVE_INFINITY: INFINITE } = Number;
const PLACES = [
  { kind: "layer", name: "head", elements: 4 },
  { kind: "output", name: "head", elements: 2 },
];

/** [measure][place][record] as the route answers it. */
function series(values: number[][][], steps: number[], measures = ["relative", "cosine", "divergence", "decisions"]) {
  const header = { places: PLACES, measures } as FunctionHeader;
  const container: Container<FunctionHeader> = {
    header,
    sections: new Map<string, Float64Array | Float32Array>([
      ["steps", Float64Array.from(steps)],
      ["past_steps", Float64Array.from(steps, (step) => step - 1)],
      ["values", Float32Array.from(values.flat(2))],
    ]),
  };
  return readFunction(container);
}

const LAYER = placeKey(PLACES[0]);
const OUTPUT = placeKey(PLACES[1]);
const three = series(
  [
    [
      [0, 0.5, INFINITE],
      [1e-6, 0.25, NONE],
    ],
    [
      [1, 0.75, 0],
      [1, -0.5, NONE],
    ],
    [
      [NONE, NONE, NONE],
      [-1e-18, 0.125, NONE],
    ],
    [
      [NONE, NONE, NONE],
      [0, 0.03125, NONE],
    ],
  ],
  [10, 20, 40],
);

const column = (from: FunctionSeries, measure: Parameters<typeof changeOf>[1], key: string) =>
  Array.from(from.steps, (_, t) => changeOf(from, measure, from.rows.get(key), t));

describe("values of a place", () => {
  it("tells a layer from an output of the same name", () => {
    expect(column(three, "relative", LAYER)).toEqual([0, 0.5, INFINITE]);
    expect(column(three, "relative", OUTPUT)).toEqual([Math.fround(1e-6), 0.25, NONE]);
  });

  it("shows what a cosine lacks to 1: zero only where nothing moved", () => {
    expect(column(three, "cosine", LAYER)).toEqual([0, 0.25, 1]);
    const [rounded, opposite, none] = column(three, "cosine", OUTPUT);
    expect([opposite, none]).toEqual([1.5, NONE]);
    // The float before 1 lacks 2⁻²⁴: what was rounded up to 1 lacks at most half of that.
    expect(rounded).toBeGreaterThan(0);
    expect(rounded).toBeLessThanOrEqual((1 - Math.fround(1 - 2 ** -24)) / 2);
    expect(formatChange(rounded, "cosine")).toBe("<6×10⁻⁸");
  });

  it("takes a rounding below 0 as 0, and what isn't there as NaN", () => {
    expect(column(three, "divergence", OUTPUT)).toEqual([0, 0.125, NONE]);
    expect(changeOf(three, "relative", undefined, 0)).toBeNaN();
    const few = series([[[1], [2]]], [5], ["relative"]);
    expect(column(few, "decisions", OUTPUT)).toEqual([NONE]);
  });

  it("reads the record in force, the last one for good", () => {
    expect([9, 10, 19.5, 20, 59.9, 60].map((step) => probedAt(three, step))).toEqual([-1, 0, 0, 1, 2, 2]);
    expect([5, 10, 39, 60].map((step) => changeAt(three, "relative", LAYER, step))).toEqual([NONE, 0, 0.5, INFINITE]);
    expect(changeAt(three, "relative", "layer/none", 10)).toBeNaN();
  });

  it("pools by the largest, past what is unknown", () => {
    const row = three.rows.get(OUTPUT);
    expect(
      [
        [0, 3],
        [2, 3],
        [1, 1],
      ].map(([from, to]) => largestOf(three, "relative", row, from, to)),
    ).toEqual([0.25, NONE, NONE]);
  });

  it("offers the measures that a place has anywhere", () => {
    expect(measuresAt([three], LAYER)).toEqual(["relative", "cosine"]);
    expect(measuresAt([three], OUTPUT)).toEqual(["relative", "cosine", "divergence", "decisions"]);
    expect(measuresAt([], OUTPUT)).toEqual([]);
  });
});

describe("axis", () => {
  const ends = ({ low, high }: { low: number; high: number }) => [10 ** low, 10 ** high];

  it("holds whole decades of all positive finite values", () => {
    expect(ends(decadesOf([NONE, 0, INFINITE, 2e-5, 0.3], 9))).toEqual([1e-5, 1].map((end) => expect.closeTo(end, 12)));
    expect(ends(decadesOf([2e-5, 0.3], 3))).toEqual([1e-3, 1].map((end) => expect.closeTo(end, 12)));
    expect(ends(decadesOf([0.01], 9))).toEqual([1e-3, 0.01].map((end) => expect.closeTo(end, 12)));
    expect(ends(decadesOf([0, NONE], 9))).toEqual([1e-3, 1].map((end) => expect.closeTo(end, 12)));
  });

  it("is of one place or of all, and linear for shares", () => {
    expect(ends(changeAxis([three], "relative", LAYER, 9))).toEqual([0.1, 1].map((end) => expect.closeTo(end, 12)));
    // The float32 of 1e-6 is a little less.
    expect(ends(changeAxis([three], "relative", null, 9))).toEqual([1e-7, 1].map((end) => expect.closeTo(end, 12)));
    expect(changeAxis([three], "decisions", null, 9)).toEqual({ log: false, low: 0, high: 0.1 });
  });

  it("puts infinity at the top and what lies below it at the bottom", () => {
    const axis = { log: true, low: -4, high: 0 };
    expect([1e-9, 1e-3, 1, 7, INFINITE].map((value) => changePlace(axis, value))).toEqual([0, 0.25, 1, 1, 1]);
    expect(changePlace({ log: false, low: 0, high: 0.5 }, 0.125)).toBe(0.25);
    expect(changeTicks(axis, 4)).toEqual([1, 0.1, 0.01, 0.001, 0.0001].map((value) => expect.closeTo(value, 12)));
    expect(changeTicks({ log: false, low: 0, high: 0.2 }, 4)).toEqual([0.2, 0.1, 0]);
  });
});

it("writes shares as shares and names the batch", () => {
  expect(formatChange(0.03125, "decisions")).toBe("3.1%");
  expect([0, NONE, INFINITE, 2.14e-3].map((value) => formatChange(value, "relative"))).toEqual([
    "0",
    "–",
    "∞",
    "2.1×10⁻³",
  ]);
  expect(
    probeText([
      { name: "image", shape: [32, 8, 8, 1], dtype: "float32", digest: "5a0c9f3e77" },
      { name: "", shape: [1], dtype: "int32", digest: "" },
    ]),
  ).toEqual(["image: 32 samples of 8×8×1 float32, digest 5a0c9f3e", "1 sample of scalar int32"]);
});
