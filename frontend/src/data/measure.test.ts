import { expect, it } from "vitest";
import { differenceOf, differenceText, differenceTicks, measureIn, measureName, placeOfDifference } from "./measure";
import type { Series } from "./series";
import { STATES } from "./states";

/** Columns of [no data, moving, reactivated, settled, frozen, pruned]. */
function series(counts: number[][], meanDelta: number[], violated: number[], pruned: number[] | null): Series {
  const starts = Float64Array.from(counts, (_, j) => 10 * j);
  return {
    starts,
    ends: starts,
    end: 10 * counts.length,
    counts: Float64Array.from(counts.flat()),
    violated: Float64Array.from(violated),
    nonfinite: new Float64Array(counts.length),
    meanDelta: Float64Array.from(meanDelta),
    channels: 4,
    pruned: pruned && Float64Array.from(pruned),
    prunable: pruned ? 40 : 0,
  };
}

const two = series(
  [
    [0, 3, 0, 1, 0, 0],
    [2, 1, 0, 0, 0, 1],
  ],
  [0.1, 0.5],
  [1, 2],
  [0, 10],
);

it("measures shares of the channels that have data, and pools columns", () => {
  expect(two.counts).toHaveLength(2 * STATES);
  expect(measureIn(two, 0, 1, "moving")).toBe(0.75);
  expect(measureIn(two, 1, 2, "moving")).toBe(0.5);
  expect(measureIn(two, 0, 2, "moving")).toBeCloseTo(4 / 6);
  expect(measureIn(two, 0, 2, "violated")).toBe(1);
  expect(measureIn(two, 0, 2, "sparsity")).toBe(0.25);
  expect(measureIn(two, 0, 2, "delta")).toBeCloseTo((3 * 0.1 + 0.5) / 4);
});

it("has no value where nothing is known", () => {
  const none = series([[4, 0, 0, 0, 0, 0]], [Number.NaN], [0], null);
  for (const which of ["moving", "violated", "sparsity", "delta"] as const)
    expect(measureIn(none, 0, 1, which)).toBeNaN();
});

it("tells differences of shares in points, of deltas in times", () => {
  expect(differenceOf(0.75, 0.5, "moving")).toBe(0.25);
  expect(differenceOf(0.01, 0.1, "delta")).toBeCloseTo(-1);
  expect(differenceOf(0, 0.1, "delta")).toBeNaN();
  expect([0.25, -0.0004, 0, Number.NaN].map((value) => differenceText(value, "moving"))).toEqual([
    "+25.0 points",
    "−<0.1 points",
    "the same",
    "–",
  ]);
  expect([Math.log10(3.2), -2, 0, Number.NaN].map((value) => differenceText(value, "delta"))).toEqual([
    "×3.2",
    "÷100",
    "the same",
    "–",
  ]);
});

it("places differences from -1 to 1, small ones of shares by their root", () => {
  expect([-1, -0.25, 0, 0.25, 1].map((value) => placeOfDifference(value, "pruned"))).toEqual([-1, -0.5, 0, 0.5, 1]);
  expect([-9, -0.5, 0, 2].map((value) => placeOfDifference(value, "delta"))).toEqual([-1, -0.5, 0, 1]);
  expect(placeOfDifference(Number.NaN, "pruned")).toBeNaN();
  expect(differenceTicks("pruned").map(([, text]) => text)).toEqual(["−100", "−25", "same", "+25", "+100"]);
  expect(differenceTicks("delta").map(([, text]) => text)).toEqual(["÷10", "÷3", "same", "×3", "×10"]);
  expect(differenceTicks("delta").map(([place]) => place)).toEqual(
    [-1, -Math.log10(3), 0, Math.log10(3), 1].map((place) => expect.closeTo(place)),
  );
});

it("names measures inside a sentence", () => {
  expect([measureName("moving"), measureName("delta")]).toEqual(["still moving", "mean Δ of moving"]);
});
