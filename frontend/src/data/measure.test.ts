import { expect, it } from "vitest";
import { figured } from "./fixtures";
import { differenceOf, differenceText, differenceTicks, measureName, measureOf, placeOfDifference } from "./measure";

it("measures shares of the channels that have data, and of the weights that can be pruned", () => {
  // No data, moving, reactivated, quiet, frozen, pruned.
  const one = figured([2, 3, 1, 0, 4, 2], { violated: 1, meanDelta: 0.25, pruned: 10, prunable: 40 });
  const shares = (["moving", "reactivated", "quiet", "frozen", "pruned", "violated"] as const).map((which) =>
    measureOf(one, which),
  );
  expect(shares).toEqual([3, 1, 0, 4, 2, 1].map((count) => count / 10));
  expect([measureOf(one, "sparsity"), measureOf(one, "delta")]).toEqual([0.25, 0.25]);
});

it("has no value where nothing is known", () => {
  const none = figured([4, 0, 0, 0, 0, 0]);
  for (const which of ["moving", "violated", "sparsity", "delta"] as const) expect(measureOf(none, which)).toBeNaN();
  expect(measureOf(figured([0, 1, 0, 0, 0, 0], { pruned: Number.NaN, prunable: 9 }), "sparsity")).toBeNaN();
});

it("tells differences of shares in points, of deltas in times", () => {
  expect(differenceOf(0.75, 0.5, "moving")).toBe(0.25);
  expect(differenceOf(0.01, 0.1, "delta")).toBeCloseTo(-1);
  expect(differenceOf(0, 0.1, "delta")).toBeNaN();
  expect([0.25, -0.0004, 0, Number.NaN].map((value) => differenceText(value, "moving"))).toEqual([
    "+25.0 pp",
    "−<0.1 pp",
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
