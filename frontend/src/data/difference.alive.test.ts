import { describe, expect, it } from "vitest";
import { type Cells, figuresAt } from "./cells";
import { aliveIn, BOTH, NEITHER, ONLY_A, ONLY_B } from "./difference";
import { listed } from "./fixtures";
import { FROZEN, MOVING, NO_DATA, PRUNED, QUIET, REACTIVATED, VIOLATED } from "./states";

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
    ...listed(delta.flat()),
  };
}

describe("what is alive in which run", () => {
  const states = [MOVING, REACTIVATED, QUIET, FROZEN, FROZEN | VIOLATED, PRUNED];
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
    expect([...aliveIn(a, b, mask).state]).toEqual(expected);
  });

  it("goes by steps, not by records, and knows nothing where a run has no record", () => {
    const one = [MOVING, MOVING, PRUNED, PRUNED];
    const often = cells([0, 1, 2, 3], [one, one]);
    const seldom = cells(
      [1, 4],
      [
        [MOVING, PRUNED],
        [PRUNED, PRUNED],
      ],
    );
    const grid = aliveIn(often, seldom, "kept");
    expect([...grid.steps]).toEqual([0, 1, 2, 3, 4]);
    expect([...grid.state]).toEqual(
      [
        [NO_DATA, BOTH, ONLY_B, ONLY_B, NO_DATA],
        [NO_DATA, ONLY_A, NEITHER, NEITHER, NO_DATA],
      ].flat(),
    );
    expect([grid.records, grid.end]).toEqual([5, 5]);
    const counts = (step: number) => figuresAt(grid, step)?.counts;
    expect([counts(1.5)?.[BOTH], counts(2.5)?.[BOTH]]).toEqual([1, 0]);
    expect(counts(2.5)?.[ONLY_B]).toBe(1);
    expect([counts(-1), counts(5)?.[NO_DATA]]).toEqual([undefined, 2]);
  });

  it("knows nothing of channels without data", () => {
    expect([...aliveIn(cells([0], [[NO_DATA]]), cells([0], [[PRUNED]]), "kept").state]).toEqual([NO_DATA]);
  });
});
