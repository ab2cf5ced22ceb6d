import { describe, expect, it } from "vitest";
import type { FunctionHeader } from "../server/types";
import type { FunctionSeries } from "./function";
import { movesIn, outputIn } from "./moves";
import type { Overview } from "./overview";
import type { Series } from "./series";
import { FROZEN, MOVING, REACTIVATED, SETTLED, STATES } from "./states";

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

/** A layer of 10 channels by column: how many are in which state, and their mean. */
function layer(columns: [Partial<Record<number, number>>, number][]): Series {
  const counts = new Float64Array(columns.length * STATES);
  columns.forEach(([states, _], j) => {
    for (const [state, count] of Object.entries(states)) counts[j * STATES + Number(state)] = count ?? 0;
  });
  return { counts, meanDelta: Float64Array.from(columns, ([, mean]) => mean) } as Series;
}

const overview = {
  starts: Float64Array.of(2, 6, 10),
  ends: Float64Array.of(4, 8, 10),
  series: new Map([
    [
      "a",
      layer([
        [{ [MOVING]: 10 }, 0.125],
        [{ [FROZEN]: 6, [SETTLED]: 4 }, Number.NaN],
        [{ [REACTIVATED]: 1, [FROZEN]: 9 }, Number.NaN],
      ]),
    ],
    [
      "b",
      layer([
        [{ [MOVING]: 1, [FROZEN]: 9 }, 0.25],
        [{ [MOVING]: 4, [FROZEN]: 6 }, 0],
        [{ 0: 10 }, Number.NaN],
      ]),
    ],
    [
      "elsewhere",
      layer([
        [{}, 1],
        [{}, 1],
        [{}, 1],
      ]),
    ],
  ]),
} as unknown as Overview;

describe("weights against outputs", () => {
  it("takes the largest output of the steps that a column pools", () => {
    const by = (row: number) => [0, 1, 2].map((j) => outputIn(series, row, overview.starts[j], overview.ends[j]));
    expect(by(0)).toEqual([0, 0.5, 0.25]);
    expect(by(1)).toEqual([Math.fround(0.4), Math.fround(0.2), Number.NaN]);
  });

  it("is still only where no channel moves and some are known to stand", () => {
    const at = (column: number) => movesIn(overview, series, ["a", "b", "elsewhere", "none"], column);
    expect(at(0)).toEqual([
      { layer: "a", weights: 0.125, output: 0, state: MOVING },
      { layer: "b", weights: 0.25, output: Math.fround(0.4), state: MOVING },
    ]);
    expect(at(1)).toEqual([
      { layer: "a", weights: 0, output: 0.5, state: FROZEN },
      { layer: "b", weights: 0, output: Math.fround(0.2), state: SETTLED },
    ]);
    expect(at(2).map(({ weights }) => weights)).toEqual([Number.NaN, Number.NaN]);
    expect(at(-1)).toEqual([]);
  });
});
