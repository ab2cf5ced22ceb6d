import { describe, expect, it } from "vitest";
import { type Cells, deltaAt } from "./cells";
import { ALIKE, differenceCells, distanceLevels, TRAINS } from "./difference";
import { listed } from "./fixtures";
import { FROZEN, MOVING, NO_DATA, PRUNED, QUIET, REACTIVATED, STATE_BITS, VIOLATED } from "./states";
import { axisEnd } from "./steps";

function cells(steps: number[], state: number[][], delta: number[][]): Cells {
  const own = Float64Array.from(steps);
  return {
    header: {} as Cells["header"],
    channels: state.length,
    records: steps.length,
    steps: own,
    pastSteps: own,
    learningRates: new Float32Array(steps.length),
    wallTimes: own,
    end: axisEnd(own, own),
    state: Uint8Array.from(state.flat()),
    ...listed(delta.flat()),
  };
}

const states = (found: Cells) => Array.from(found.state, (byte) => byte & STATE_BITS);

describe("the difference of two layers", () => {
  it("is the distance of the deltas where both train", () => {
    const own = cells([0], [[MOVING], [REACTIVATED], [MOVING]], [[0.5], [0.125], [0.25]]);
    const base = cells([0], [[MOVING], [MOVING], [MOVING]], [[0.25], [0.25], [0.25]]);
    const found = differenceCells(own, base);
    expect(states(found)).toEqual([ALIKE, ALIKE, ALIKE]);
    const decades = [0, 1, 2].map((at) => deltaAt(found, at));
    expect(decades[0]).toBeCloseTo(Math.log10(2));
    expect(decades[1]).toBeCloseTo(-Math.log10(2));
    expect(decades[2]).toBeCloseTo(0);
  });

  it("is the run's own state where they differ, and nothing where both are held alike", () => {
    const own = cells([0], [[MOVING], [FROZEN | VIOLATED], [PRUNED], [QUIET], [NO_DATA]], Array(5).fill([0.5]));
    const base = cells([0], [[PRUNED], [MOVING], [PRUNED], [FROZEN], [MOVING]], Array(5).fill([0.2]));
    const found = differenceCells(own, base);
    expect(states(found)).toEqual([TRAINS, FROZEN, ALIKE, QUIET, NO_DATA]);
    expect(found.state[1] & VIOLATED).toBe(VIOLATED);
    expect(deltaAt(found, 2)).toBeCloseTo(0);
  });

  it("compares records at the same steps, and has none outside those of the baseline", () => {
    const own = cells([0, 5, 10, 15, 30], [[MOVING, MOVING, MOVING, MOVING, MOVING]], [[1, 1, 1, 1, 1]]);
    const base = cells([5, 10], [[MOVING, FROZEN]], [[0.5, 0]]);
    expect(states(differenceCells(own, base))).toEqual([NO_DATA, ALIKE, TRAINS, NO_DATA, NO_DATA]);
  });

  it.each([
    ["out of zero", Number.POSITIVE_INFINITY, 1, Number.POSITIVE_INFINITY],
    ["from a baseline that didn't move", 1, 0, Number.POSITIVE_INFINITY],
    ["no move", 0, 1, Number.NEGATIVE_INFINITY],
    ["no number", Number.NaN, 1, -0],
    ["both zero", 0, 0, -0],
    ["both out of zero", Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, -0],
  ])("bears %s", (_, own, base, decades) => {
    const found = differenceCells(cells([0], [[MOVING]], [[own]]), cells([0], [[MOVING]], [[base]]));
    expect(deltaAt(found, 0)).toBe(decades);
  });
});

it("colours rise with the distance whatever its direction", () => {
  const levels = distanceLevels();
  expect(levels[0]).toBe(0);
  // a decade is 53.15 sixteenths of an octave: there the scale ends
  expect(levels[2 * 26] >> 1).toBe(62);
  expect(levels[2 * 26 + 1]).toBe(levels[2 * 26] + 1);
  expect(levels[2 * 54] >> 1).toBe(127);
  expect(levels[32_001]).toBe(255);
});
