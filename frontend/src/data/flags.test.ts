import { expect, it } from "vitest";
import type { LaneFlag } from "../server/types";
import { flagsAt } from "./flags";

const flag = (first_step: number, last_step = first_step): LaneFlag => ({
  kind: "nonfinite",
  first_step,
  last_step,
  times: 1,
  amount: 8,
});
const flags = [flag(425), flag(440, 600), flag(440)];

it.each([
  ["before a flag", 421, 425, [0]],
  ["behind it", 429, 425, [0]],
  ["nearer to the next, of which there are two", 433, 440, [1, 2]],
  ["within a stretch", 500.5, 500.5, [1]],
  ["behind a stretch", 603, 600, [1]],
  ["far from all", 700, 700, []],
  ["as far as is read", 415, 425, [0]],
  ["a little further", 414.9, 414.9, []],
])("reads the nearest flag's step %s", (_, place, step, shown) => {
  expect(flagsAt(flags, place, 10)).toEqual({ step, flags: shown.map((i) => flags[i]) });
});

it("reads the place where there are no flags", () => expect(flagsAt([], 3, 10)).toEqual({ step: 3, flags: [] }));
