import { describe, expect, it } from "vitest";
import type { Cells } from "./cells";
import { DELTA_INFINITE, DELTA_NAN, DELTA_ZERO } from "./delta";
import { aliveIn, BOTH, countsAt, decadesApart, movesMore, NEITHER, NO_DIFFERENCE, ONLY_A, ONLY_B } from "./difference";
import { FROZEN, MOVING, NO_DATA, PRUNED, REACTIVATED, SETTLED, VIOLATED } from "./states";

/** Cells of one run; `end` is where its last record stops. */
function cells(steps: number[], state: number[][], delta: number[][] = state.map((row) => row.map(() => 0))): Cells {
  const at = Float64Array.from(steps);
  return {
    header: {} as Cells["header"],
    channels: state.length,
    records: steps.length,
    steps: at,
    pastSteps: at,
    learningRates: new Float32Array(steps.length),
    wallTimes: at,
    end: steps[steps.length - 1] + 1,
    state: Uint8Array.from(state.flat()),
    delta: Int16Array.from(delta.flat()),
  };
}

describe("what is alive in which run", () => {
  const states = [MOVING, REACTIVATED, SETTLED, FROZEN, FROZEN | VIOLATED, PRUNED];
  const rows = states.flatMap((a) => states.map((b) => [a, b]));
  const [a, b] = [
    cells(
      [0],
      rows.map(([own]) => [own]),
    ),
    cells(
      [0],
      rows.map(([, other]) => [other]),
    ),
  ];

  it.each([
    ["kept", [PRUNED]],
    ["trainable", [PRUNED, FROZEN]],
  ] as const)("is told of each pair of states by the %s mask", (mask, held) => {
    const gone = (state: number) => (held as readonly number[]).includes(state & 7);
    const expected = rows.map(([own, other]) => {
      if (gone(own)) return gone(other) ? NEITHER : ONLY_B;
      return gone(other) ? ONLY_A : BOTH;
    });
    const grid = aliveIn(a, b, mask);
    expect([...grid.values]).toEqual(expected);
    expect(countsAt(grid, 0)).toEqual([0, 1, 2, 3, 4].map((kind) => expected.filter((one) => one === kind).length));
  });

  it("goes by steps, not by records, and knows nothing where a run has no record", () => {
    const often = cells([0, 1, 2, 3], [[MOVING, MOVING, PRUNED, PRUNED]]);
    const seldom = cells([1, 4], [[MOVING, PRUNED]]);
    const grid = aliveIn(often, seldom, "kept");
    expect([...grid.steps]).toEqual([0, 1, 2, 3, 4]);
    expect([...grid.values]).toEqual([0, BOTH, ONLY_B, ONLY_B, 0]);
    expect(grid.end).toBe(5);
    expect([countsAt(grid, -1), countsAt(grid, 5)]).toEqual([null, null]);
    expect(countsAt(grid, 2.5)).toEqual([0, 0, 0, 1, 0]);
  });

  it("knows nothing of channels without data", () => {
    expect([...aliveIn(cells([0], [[NO_DATA]]), cells([0], [[PRUNED]]), "kept").values]).toEqual([0]);
  });
});

describe("how much more one moves", () => {
  const code = (delta: number) => Math.round(16 * Math.log2(delta));

  it("is the difference of the logarithms, from the threshold to 1", () => {
    expect(decadesApart(code(1e-3), code(1e-2), 1e-4)).toBeCloseTo(1, 1);
    expect(decadesApart(code(1e-2), DELTA_ZERO, 1e-4)).toBeCloseTo(-2, 1);
    expect(decadesApart(DELTA_ZERO, code(1e-6), 1e-4)).toBe(0);
    expect(decadesApart(code(0.5), DELTA_INFINITE, 1e-4)).toBeCloseTo(0.3, 1);
    expect(decadesApart(DELTA_NAN, 0, 1e-4)).toBeNaN();
  });

  it("is drawn in steps of two decades a side", () => {
    const deltas = [
      [1e-2, 1e-2],
      [1e-3, 1e-2],
      [1e-1, 1e-4],
      [1e-4, 1],
    ];
    const state = deltas.map(() => [MOVING]);
    const [a, b] = [0, 1].map((i) =>
      cells(
        [0],
        state,
        deltas.map((row) => [code(row[i])]),
      ),
    );
    const { values } = movesMore(a, b, 1e-5);
    const expected = deltas.map(([own, other]) => Math.max(-1, Math.min(1, Math.log10(other / own) / 2)) * 127);
    values.forEach((value, i) => {
      expect(Math.abs(value - expected[i])).toBeLessThan(2.5); // a code is 2 ** (1 / 16)
    });
  });

  it("has no difference where one has no data or no number", () => {
    const state = [[MOVING], [NO_DATA], [MOVING]];
    const own = cells([0], state, [[0], [0], [DELTA_NAN]]);
    expect([...movesMore(own, cells([0], [[MOVING], [MOVING], [MOVING]]), 1e-4).values]).toEqual([
      0,
      NO_DIFFERENCE,
      NO_DIFFERENCE,
    ]);
  });
});
