import { expect, it } from "vitest";
import { type Cells, countsOf, summarise } from "./cells";
import { listed } from "./fixtures";
import { orderRows, segmentsOf } from "./sort";
import { FOLLOWING, FROZEN, MOVING, NONFINITE, PRUNED, QUIET, REACTIVATED, VIOLATED } from "./states";

const SHORT: Record<string, number> = {
  m: MOVING,
  r: REACTIVATED,
  s: QUIET,
  f: FROZEN,
  p: PRUNED,
  F: FROZEN | VIOLATED,
  t: FOLLOWING,
  T: FOLLOWING,
  n: NONFINITE,
};

/** Cells from one word a channel: mmsp is moving, moving, quiet, pruned; t follows something that moves. */
function cells(...words: string[]): Cells {
  const records = words[0]?.length ?? 0;
  const steps = Float64Array.from({ length: records }, (_, t) => 10 * t);
  return {
    header: {} as Cells["header"],
    channels: words.length,
    records,
    steps,
    pastSteps: steps,
    learningRates: new Float32Array(records),
    wallTimes: steps,
    end: records * 10,
    state: Uint8Array.from(words.join(""), (letter) => SHORT[letter]),
    ...listed(Array.from(words.join(""), (letter, i) => ("mt".includes(letter) ? 2 ** (-1 - i / 16) : 0))),
  };
}

it("sums up each channel", () => {
  const summary = summarise(cells("mmss", "mFFF", "pprm"));
  expect(Array.from(summary.final)).toEqual([QUIET, FROZEN, MOVING]);
  expect(Array.from(summary.lastMoved)).toEqual([1, 3, 3]);
  expect(Array.from(summary.firstHeld)).toEqual([4, 1, 0]);
  expect(Array.from(summary.firstViolated)).toEqual([-1, 1, -1]);
});

it("sees what follows move, and never holds it", () => {
  const summary = summarise(cells("tTtT", "TTTT", "mtpt"));
  expect(Array.from(summary.final)).toEqual([FOLLOWING, FOLLOWING, FOLLOWING]);
  expect(Array.from(summary.lastMoved)).toEqual([2, -1, 3]);
  expect(Array.from(summary.firstHeld)).toEqual([4, 4, 2]);
  expect(Array.from(orderRows(summary, "moved"))).toEqual([2, 0, 1]);
});

it("orders by last moved inside the final states, and names the segments", () => {
  const summary = summarise(cells("mpp", "mms", "mmm", "mmp", "mss"));
  const rows = orderRows(summary, "moved");
  expect(Array.from(rows)).toEqual([2, 1, 4, 3, 0]);
  expect(segmentsOf(summary, rows, "moved")).toEqual([
    { state: MOVING, from: 0, to: 1 },
    { state: QUIET, from: 1, to: 3 },
    { state: PRUNED, from: 3, to: 5 },
  ]);
  expect(segmentsOf(summary, rows, "index")).toEqual([]);
  // What is broken is on top.
  expect(Array.from(orderRows(summarise(cells("mmm", "mmn", "mpp")), "moved"))).toEqual([1, 0, 2]);
});

it("orders by index, by the first hold and by the final delta, ties by index", () => {
  const summary = summarise(cells("mmf", "fmm", "mmm", "mfm"));
  expect(Array.from(orderRows(summary, "index"))).toEqual([0, 1, 2, 3]);
  expect(Array.from(orderRows(summary, "held"))).toEqual([1, 3, 0, 2]);
  expect(Array.from(orderRows(summary, "delta"))).toEqual([1, 2, 3, 0]);
});

it("counts states, violations and the mean delta per record", () => {
  const found = countsOf(cells("mF", "mm", "ps"));
  expect(Array.from(found.counts)).toEqual([0, 2, 0, 0, 0, 1, 0, 0, /* */ 0, 1, 0, 1, 1, 0, 0, 0]);
  expect(Array.from(found.violated)).toEqual([0, 1]);
  // Letters 0 and 2 of "mFmmps" move at the first record, letter 3 at the second.
  expect(found.meanDelta[0]).toBeCloseTo((2 ** -1 + 2 ** (-18 / 16)) / 2);
  expect(found.meanDelta[1]).toBeCloseTo(2 ** (-19 / 16));
});

it("bears no channels and no records", () => {
  expect(countsOf(cells()).counts).toHaveLength(0);
  expect(
    summarise({ ...cells("m"), records: 0, state: new Uint8Array(0), delta: new Uint8Array(0) }).lastMoved[0],
  ).toBe(-1);
});
