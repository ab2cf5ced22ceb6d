import { expect, it } from "vitest";
import type { RunInfo } from "../server/types";
import { agoText, livenessOf } from "./live";

const run = (patch: Partial<RunInfo>): RunInfo =>
  ({ closed: false, source: "sink", records: 11, wall_time: [1000, 2000], ...patch }) as RunInfo;

it.each([
  ["a fresh record", run({}), 2119, "live"],
  ["a fresh record by another clock", run({}), 1900, "live"],
  ["a record that is due", run({}), 2499, "live"],
  ["no record for long", run({}), 2501, "silent"],
  ["one record, long ago", run({ records: 1 }), 2121, "silent"],
  ["an end", run({ closed: true }), 2001, "ended"],
  ["a writer that never tells of an end", run({ source: "summary" }), 9000, "ended"],
  ["such a writer with a fresh record", run({ source: "summary" }), 2001, "live"],
  ["no records", run({ records: 0, wall_time: null }), 2001, "ended"],
])("tells %s", (_, one, now, expected) => {
  expect(livenessOf(one, now)).toBe(expected);
});

it("tells how long ago", () => {
  expect([-5, 59, 60, 7300, 90_000, 1e9].map(agoText)).toEqual(["0 s", "59 s", "1 min", "2 h", "1 d", "31 years"]);
});
