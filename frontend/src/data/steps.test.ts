import { expect, it } from "vitest";
import { axisEnd, expand, lastAtOrBefore, mergeSteps } from "./steps";

it("lists the steps of stretches one after the other", () => {
  expect(
    Array.from(
      expand([
        [5, 10, 3],
        [26, 1, 2],
        [40, 7, 1],
      ]),
    ),
  ).toEqual([5, 15, 25, 26, 27, 40]);
  expect(expand([])).toHaveLength(0);
  expect(expand([[3, 1, 0]])).toHaveLength(0);
});

it("finds the last value at or before a step, in lists of any length", () => {
  for (let length = 0; length < 12; length++) {
    const steps = Float64Array.from({ length }, (_, i) => i * i + 2);
    for (let step = -1; step < 130; step += 0.5) {
      let expected = -1;
      steps.forEach((value, i) => {
        if (value <= step) expected = i;
      });
      expect(lastAtOrBefore(steps, step)).toBe(expected);
    }
  }
});

it("ends the axis one gap after the last column", () => {
  expect(axisEnd([1, 11, 21], [10, 20, 30])).toBe(31);
  expect(axisEnd([0, 5, 25], [0, 5, 25])).toBe(45);
});

it("gives a single record one step of width, columns without a gap one, and none to an empty run", () => {
  expect(axisEnd([7], [9])).toBe(10);
  expect(axisEnd([1, 4], [4, 4])).toBe(5);
  expect(axisEnd([], [])).toBe(0);
});

it("merges lists by value, each step once", () => {
  const list = Float64Array.of(9, 10, 100);
  expect(Array.from(mergeSteps([list, [2, 10, 30], []]))).toEqual([2, 9, 10, 30, 100]);
  const one = mergeSteps([list]);
  expect(one).toEqual(list);
  expect(one).not.toBe(list);
  expect(mergeSteps([])).toHaveLength(0);
});
