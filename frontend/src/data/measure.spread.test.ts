import { describe, expect, it } from "vitest";
import { spreadOf } from "./measure";
import { groupName } from "./names";

describe("groupName", () => {
  it.each([
    ["prune_s0", /_s\d+$/, "prune"],
    ["prune_s12", /_s\d+$/, "prune"],
    ["s3-prune", /s\d+-/, "prune"],
    ["lr1e-3_seed4", /^(.*?)_seed/, "lr1e-3"],
    ["dense", /_s\d+$/, null],
  ])("%s by %s is of %s", (name, pattern, group) => {
    expect(groupName(name, pattern)).toBe(group);
  });
});

describe("spreadOf", () => {
  it("has mean, sample deviation and range of what is known", () => {
    // 1, 2, 6: mean 3, squares 4 + 1 + 9 = 14, over 2.
    expect(spreadOf([1, Number.NaN, 2, 6])).toEqual({ mean: 3, deviation: Math.sqrt(7), low: 1, high: 6, count: 3 });
  });
  it("has no deviation of one value, and is nothing of none", () => {
    expect(spreadOf([5])).toEqual({ mean: 5, deviation: Number.NaN, low: 5, high: 5, count: 1 });
    expect(spreadOf([Number.NaN])).toBeNull();
    expect(spreadOf([])).toBeNull();
  });
});
