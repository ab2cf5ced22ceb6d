import { describe, expect, it } from "vitest";
import { pixelColumns, stepTicks, toPixel, toStep } from "./scale";

describe("stepTicks", () => {
  it("picks round steps", () => {
    expect(stepTicks(0, 40_250, 4)).toEqual([0, 10_000, 20_000, 30_000, 40_000]);
    expect(stepTicks(1, 21, 4)).toEqual([5, 10, 15, 20]);
    expect(stepTicks(7, 8, 12)).toEqual([7, 8]);
    expect(stepTicks(5, 5, 4)).toEqual([]);
    expect(stepTicks(-0.5, 2, 3)).toEqual([0, 1, 2]);
    expect(stepTicks(-20, 20, 4)).toEqual([-20, -10, 0, 10, 20]);
  });
});

describe("pixelColumns", () => {
  const starts = Float64Array.of(0, 10, 20, 30);

  it("repeats a record over the pixels until the next one", () => {
    const { from, to } = pixelColumns(starts, 40, { from: 0, to: 40, width: 8 });
    expect(Array.from(from)).toEqual([0, 0, 1, 1, 2, 2, 3, 3]);
    expect(Array.from(to)).toEqual([1, 1, 2, 2, 3, 3, 4, 4]);
  });

  it("gathers the records that share a pixel, so that none is lost", () => {
    const { from, to } = pixelColumns(starts, 40, { from: 0, to: 40, width: 2 });
    expect([Array.from(from), Array.from(to)]).toEqual([
      [0, 2],
      [2, 4],
    ]);
  });

  it("has no column before the first record and after the last", () => {
    const { from } = pixelColumns(Float64Array.of(10, 20), 30, { from: 0, to: 40, width: 4 });
    expect(Array.from(from)).toEqual([-1, 0, 1, -1]);
  });

  it("shows the record in force at the left edge of a zoom", () => {
    const { from } = pixelColumns(starts, 40, { from: 12, to: 18, width: 3 });
    expect(Array.from(from)).toEqual([1, 1, 1]);
  });

  it("agrees with the scale", () => {
    const scale = { from: 5, to: 25, width: 100 };
    expect(toStep(scale, toPixel(scale, 13))).toBeCloseTo(13);
  });
});
