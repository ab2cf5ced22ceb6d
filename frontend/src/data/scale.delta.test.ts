import { expect, it } from "vitest";
import { LEVELS, levelOf, levelTable } from "./scale";

it("is logarithmic from the threshold to 0.1, and palest at zero", () => {
  expect([0, 1e-4, 1e-3, 0.1, 5, Number.POSITIVE_INFINITY].map((delta) => levelOf(delta, 1e-4))).toEqual([
    0,
    0,
    Math.round((LEVELS - 1) / 3),
    LEVELS - 1,
    LEVELS - 1,
    LEVELS - 1,
  ]);
  expect(levelOf(0.2, 0.1)).toBeLessThan(LEVELS - 1);
  expect(levelOf(1, 0.1)).toBe(LEVELS - 1);
});

it("makes one table of a list of values, the same each time", () => {
  const values = Float64Array.of(0, 1e-3, 1, Number.POSITIVE_INFINITY, Number.NaN);
  const table = levelTable(values, 1e-4);
  expect(Array.from(table)).toEqual([0, Math.round((LEVELS - 1) / 3), LEVELS - 1, LEVELS - 1, 0]);
  expect(levelTable(values, 1e-3)[1]).toBe(0);
  expect(levelTable(values, 1e-4)).toBe(table);
  expect(levelTable(values.slice(), 1e-4)).not.toBe(table);
});
