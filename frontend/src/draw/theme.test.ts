import { describe, expect, it } from "vitest";
import { FOLLOWING, FROZEN, LEGEND, NONFINITE, PRUNED, REACTIVATED } from "../data/states";
import { distance, VISIONS } from "./colour.fixtures";
import { blend, DARK, divergingPixel, LIGHT, pack, pixelsOf, runColor, type Theme } from "./theme";

/** The smallest CIEDE2000 between two states, the movement scale taken at its ends and its middle. */
function closest(theme: Theme): number {
  const flat = LEGEND.slice(1).map((state) => theme.states[state]);
  let smallest = Number.POSITIVE_INFINITY;
  for (const vision of VISIONS) {
    flat.forEach((a, i) => {
      for (const b of flat.slice(i + 1)) smallest = Math.min(smallest, distance(a, b, vision));
      for (const b of theme.movement) smallest = Math.min(smallest, distance(a, b, vision));
    });
  }
  return smallest;
}

describe("states are told apart with normal, protan, deutan and tritan sight", () => {
  it("by 17 in light", () => expect(Math.round(closest(LIGHT))).toBeGreaterThanOrEqual(17));
  it("by 20 in dark", () => expect(closest(DARK)).toBeGreaterThanOrEqual(20));

  it.each([
    ["light", LIGHT, 17],
    ["dark", DARK, 14],
  ])("what follows, which is rare, stands out from all others, %s", (_, theme, least) => {
    const others = LEGEND.slice(1).map((state) => theme.states[state]);
    for (const vision of VISIONS)
      for (const other of [...others, ...theme.movement, theme.violated])
        expect(distance(theme.states[FOLLOWING], other, vision), other).toBeGreaterThanOrEqual(least);
  });

  it.each([
    ["light", LIGHT],
    ["dark", DARK],
  ])("a violation stands out from what it lies on, %s", (_, theme) => {
    for (const vision of VISIONS) {
      for (const state of [FROZEN, PRUNED]) {
        expect(distance(theme.violated, theme.states[state], vision)).toBeGreaterThanOrEqual(17);
      }
    }
  });

  it.each([
    ["light", LIGHT, 17],
    ["dark", DARK, 20],
  ])("what isn't finite stands out from all it can lie on or beside, %s", (_, theme, least) => {
    const tints = [0, 0.25, 0.5, 0.75, 1].map((place) => blend(theme.movement, place));
    const others = [...tints, ...theme.states.slice(REACTIVATED, NONFINITE), theme.violated, theme.panel];
    for (const vision of VISIONS) {
      for (const other of others) {
        expect(distance(theme.states[NONFINITE], other, vision), other).toBeGreaterThanOrEqual(least);
      }
    }
  });
});

it.each([
  ["light", LIGHT],
  ["dark", DARK],
])("tells less from more and from the same on the diverging scale, %s", (_, theme) => {
  const [less, same, more] = theme.diverging;
  for (const vision of VISIONS) {
    for (const [a, b] of [
      [less, more],
      [less, same],
      [more, same],
    ])
      expect(distance(a, b, vision)).toBeGreaterThanOrEqual(16);
  }
  expect([-1, 0, 1].map((place) => divergingPixel(pixelsOf(theme), place))).toEqual(theme.diverging.map(pack));
});

it("packs little-endian pixels and runs through the movement scale", () => {
  expect(pack("#010203")).toBe(0xff030201);
  expect([0, 0.5, 1].map((at) => blend(LIGHT.movement, at))).toEqual(LIGHT.movement);
  expect(pixelsOf(LIGHT).movement[0]).toBe(pack("#ffdc9c"));
});

it("takes TensorBoard's colours by index, the first one brighter in dark", () => {
  expect([0, 1, 7].map((index) => runColor(index, false))).toEqual(["#425066", "#12b5cb", "#425066"]);
  expect([0, 7, 8].map((index) => runColor(index, true))).toEqual(["#8e98a3", "#8e98a3", "#12b5cb"]);
});
