import { describe, expect, it } from "vitest";
import { contrast, lightness, VISIONS } from "./colour.fixtures";
import { blend, DARK, LIGHT, type Stops } from "./theme";

const THEMES = [
  ["light", LIGHT],
  ["dark", DARK],
] as const;
const PLACES = Array.from({ length: 33 }, (_, i) => i / 32);

/** The smallest step of lightness along a scale, with its sign, over all ways of seeing. */
function smallestStep(stops: Stops, places: readonly number[]): number {
  const steps = VISIONS.flatMap((vision) => {
    const seen = places.map((place) => lightness(blend(stops, place), vision));
    const rising = Math.sign(seen[seen.length - 1] - seen[0]);
    return seen.slice(1).map((value, i) => rising * (value - seen[i]));
  });
  return Math.min(...steps);
}

describe.each(THEMES)("lightness alone orders the values of a scale, with any sight, %s", (_, theme) => {
  it("of movement", () => expect(smallestStep(theme.movement, PLACES)).toBeGreaterThan(0.2));
  it("of overlap", () => expect(smallestStep(theme.overlap, PLACES)).toBeGreaterThan(0.2));
  it("of differences, from the middle to either end", () => {
    for (const half of [PLACES.filter((place) => place <= 0.5).reverse(), PLACES.filter((place) => place >= 0.5)])
      expect(smallestStep(theme.diverging, half)).toBeGreaterThan(0.2);
  });

  it("and finds one that turns back", () => {
    expect(smallestStep(["#000000", "#ffffff", "#808080"], PLACES)).toBeLessThan(0);
  });
});

it("counts contrast as WCAG does", () => {
  expect(contrast("#ffffff", "#000000")).toBeCloseTo(21);
  expect(contrast("#777777", "#ffffff")).toBeCloseTo(4.48, 2);
});
