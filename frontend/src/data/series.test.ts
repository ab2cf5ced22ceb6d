import { describe, expect, it } from "vitest";
import { addReadouts, addSeries, axisEnd, columnAt, lastAtOrBefore, readAt, type Series, violations } from "./series";
import { STATES } from "./states";

/** A series with the given counts per column, by state code. */
function series(
  starts: number[],
  ends: number[],
  counts: number[][],
  meanDelta: number[],
  violated?: number[],
  pruned?: number[],
): Series {
  return {
    starts: Float64Array.from(starts),
    ends: Float64Array.from(ends),
    end: axisEnd(Float64Array.from(starts), Float64Array.from(ends)),
    counts: Float64Array.from(counts.flat()),
    violated: Float64Array.from(violated ?? starts.map(() => 0)),
    nonfinite: new Float64Array(starts.length),
    meanDelta: Float64Array.from(meanDelta),
    channels: counts[0].reduce((sum, count) => sum + count, 0),
    pruned: pruned ? Float64Array.from(pruned) : null,
    prunable: pruned ? 100 : 0,
  };
}

describe("columns", () => {
  const some = series(
    [1, 11, 21],
    [10, 20, 30],
    [
      [0, 4, 0, 0, 0, 0],
      [0, 2, 0, 2, 0, 0],
      [0, 0, 0, 4, 0, 0],
    ],
    [0.1, 0.2, Number.NaN],
  );

  it("holds a record until the next one and ends one gap after the last", () => {
    expect(some.end).toBe(31);
    expect([0, 1, 10, 11, 30, 30.9, 31].map((step) => columnAt(some, step))).toEqual([-1, 0, 0, 1, 2, 2, -1]);
  });

  it("gives a single record one step of width and none to an empty run", () => {
    expect(axisEnd(Float64Array.of(7), Float64Array.of(7))).toBe(8);
    expect(axisEnd(new Float64Array(0), new Float64Array(0))).toBe(0);
    expect(columnAt({ starts: new Float64Array(0), end: 0 }, 0)).toBe(-1);
  });

  it("finds the last value at or before", () => {
    expect([0, 1, 2, 9].map((step) => lastAtOrBefore([1, 2, 5], step))).toEqual([-1, 0, 1, 2]);
  });

  it("reads the numbers of a column", () => {
    const readout = readAt(some, 15);
    expect(readout).toMatchObject({ total: 4, meanDelta: 0.2, firstStep: 11, lastStep: 20 });
    expect(readout?.counts).toHaveLength(STATES);
    expect(readAt(some, 99)).toBeNull();
  });
});

describe("sums", () => {
  const a = series([1], [1], [[0, 3, 0, 1, 0, 0]], [0.1], [2]);
  const b = series([1], [1], [[0, 1, 0, 0, 0, 7]], [0.5]);
  const halved = series([1], [1], [[0, 1, 0, 0, 0, 0]], [1], [0], [50]);
  const still = series([1], [1], [[0, 0, 0, 2, 0, 0]], [Number.NaN]);

  it("adds counts and weights the mean delta by the channels that move", () => {
    const sum = addSeries([a, b, still]);
    expect(sum.channels).toBe(14);
    expect(Array.from(sum.counts)).toEqual([0, 4, 0, 3, 0, 7]);
    expect(sum.meanDelta[0]).toBeCloseTo((3 * 0.1 + 0.5) / 4);
    expect(sum.violated[0]).toBe(2);
  });

  it("adds pruned weights, and doesn't know them where the server doesn't tell", () => {
    expect(readAt(addSeries([halved, halved, halved]), 1)).toMatchObject({ pruned: 150, prunable: 300 });
    expect(readAt(addSeries([a, b]), 1)).toMatchObject({ pruned: Number.NaN, prunable: 0 });
    expect(addReadouts([readAt(halved, 1), readAt(halved, 1)])).toMatchObject({ pruned: 100, prunable: 200 });
  });

  it("has no mean delta where nothing moves", () => {
    expect(addSeries([still, still]).meanDelta[0]).toBeNaN();
  });

  it("adds readouts of runs and skips those without data", () => {
    expect(addReadouts([null, readAt(a, 1), readAt(b, 1)])).toMatchObject({ total: 12, violated: 2 });
    expect(addReadouts([null])).toBeNull();
  });

  it("finds the first and the largest violation", () => {
    const some = series(
      [1, 2, 3],
      [1, 2, 3],
      [0, 1, 2].map(() => [0, 4, 0, 0, 0, 0]),
      [1, 1, 1],
      [0, 2, 3],
    );
    expect(violations(some)).toEqual({ most: 3, firstStep: 2 });
    expect(violations(b)).toBeNull();
  });
});
