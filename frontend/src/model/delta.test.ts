import { expect, it } from "vitest";
import { DELTA_INFINITE, DELTA_NAN, DELTA_ZERO, deltaOf, LEVELS, levelOf, levelTable } from "./delta";

it("decodes zero and infinity exactly, and sixteen codes an octave", () => {
  expect(deltaOf(DELTA_ZERO)).toBe(0);
  expect(deltaOf(DELTA_INFINITE)).toBe(Number.POSITIVE_INFINITY);
  expect(deltaOf(DELTA_NAN)).toBeNaN();
  expect(deltaOf(-16)).toBe(0.5);
});

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
  expect(levelTable(1e-4)[DELTA_ZERO + 32768]).toBe(0);
  expect(levelTable(1e-4)[0 + 32768]).toBe(LEVELS - 1);
});
