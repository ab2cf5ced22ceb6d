import { expect, it } from "vitest";
import { applyFilter, NO_FILTER } from "./names";

it("keeps the last valid pattern while a wrong one is typed", () => {
  const good = applyFilter("conv", NO_FILTER);
  const wrong = applyFilter("conv(", good);
  expect(wrong).toEqual({ text: "conv(", pattern: good.pattern, valid: false });
  expect(applyFilter("", wrong)).toBe(NO_FILTER);
  expect(good.pattern?.test("block/Conv1")).toBe(true);
});
