import { describe, expect, it } from "vitest";
import type { FunctionHeader } from "../server/types";
import { figured } from "./fixtures";
import type { FunctionSeries } from "./function";
import { movesAt } from "./function";
import type { Figures } from "./record";
import { FROZEN, MOVING, NO_DATA, NONFINITE, PRUNED, QUIET, REACTIVATED, STATES } from "./states";

const steps = [2, 4, 6, 8, 10];
const outputs = { a: [0, 0, 0.5, Number.NaN, 0.25], b: [0.1, 0.4, 0.2, Number.NaN, Number.NaN] };
const series: FunctionSeries = {
  header: {
    places: [
      { kind: "layer", name: "a", elements: 1 },
      { kind: "layer", name: "b", elements: 1 },
      { kind: "output", name: "a", elements: 1 },
    ],
    measures: ["relative"],
  } as FunctionHeader,
  steps: Float64Array.from(steps),
  pastSteps: Float64Array.from(steps),
  end: 12,
  values: Float32Array.from([...outputs.a, ...outputs.b, 9, 9, 9, 9, 9]),
  rows: new Map([
    ["layer/a", 0],
    ["layer/b", 1],
    ["output/a", 2],
  ]),
};

/** Figures of a layer of 10 channels: how many are in which state, and their mean. */
const layer = (counts: Partial<Record<number, number>>, meanDelta: number): Figures =>
  figured(
    Array.from({ length: STATES }, (_, state) => counts[state] ?? 0),
    { meanDelta },
  );

describe("weights against outputs", () => {
  it("is of the probe's record in force, and of the figures at its step", () => {
    const asked: [string, number][] = [];
    const some = layer({ [MOVING]: 10 }, 0.125);
    const found = movesAt(series, ["b", "elsewhere", "a"], 7.9, (name, step) => {
      asked.push([name, step]);
      return some;
    });
    expect(asked).toEqual([
      ["b", 6],
      ["a", 6],
    ]);
    expect(found).toEqual([
      { layer: "b", weights: 0.125, output: Math.fround(0.2), state: MOVING },
      { layer: "a", weights: 0.125, output: 0.5, state: MOVING },
    ]);
    expect(movesAt(series, ["a"], 99, () => some)[0].output).toBe(0.25);
    expect(movesAt(series, ["a"], 8, () => some)[0].output).toBeNaN();
  });

  it("is none before the first record of the probe, and of layers whose figures aren't there", () => {
    expect(movesAt(series, ["a", "b"], 1.9, () => layer({ [MOVING]: 10 }, 1))).toEqual([]);
    const only = movesAt(series, ["a", "b"], 2, (name) => (name === "a" ? null : layer({ [MOVING]: 10 }, 1)));
    expect(only.map((move) => move.layer)).toEqual(["b"]);
  });

  it.each([
    ["moves by its mean, if few channels do", layer({ [MOVING]: 1, [FROZEN]: 9 }, 0.25), 0.25, MOVING],
    ["is quiet where what is free doesn't change at all", layer({ [MOVING]: 4, [FROZEN]: 6 }, 0), 0, QUIET],
    ["isn't known where the mean isn't", layer({ [MOVING]: 4 }, Number.NaN), Number.NaN, MOVING],
    ["is still as most are: frozen", layer({ [FROZEN]: 6, [QUIET]: 4 }, Number.NaN), 0, FROZEN],
    ["is still as most are: pruned", layer({ [PRUNED]: 6, [FROZEN]: 3, [NO_DATA]: 1 }, Number.NaN), 0, PRUNED],
    ["isn't known where one is nonfinite", layer({ [NONFINITE]: 1, [FROZEN]: 9 }, Number.NaN), Number.NaN, FROZEN],
    ["isn't known while channels begin anew", layer({ [REACTIVATED]: 1, [FROZEN]: 9 }, Number.NaN), Number.NaN, FROZEN],
  ])("a layer %s", (_, figures, weights, state) => {
    expect(movesAt(series, ["a"], 2, () => figures)).toEqual([{ layer: "a", weights, output: 0, state }]);
  });

  it("isn't known of a layer without data", () => {
    expect(movesAt(series, ["a"], 2, () => layer({ [NO_DATA]: 10 }, Number.NaN))[0].weights).toBeNaN();
  });
});
