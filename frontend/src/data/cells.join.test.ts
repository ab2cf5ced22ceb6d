import { describe, expect, it } from "vitest";
import { type Cells, deltaAt, joinCells } from "./cells";
import { listed } from "./fixtures";
import { axisEnd } from "./steps";

/** Columns of the given steps: the state of channel c at step s is 10 c + s, as is its delta. */
function cells(steps: number[], header: Partial<Cells["header"]>, channels = 2): Cells {
  const own = Float64Array.from(steps);
  const state = Array.from({ length: channels }, (_, c) => steps.map((step) => 10 * c + step)).flat();
  return {
    header: { variable: "a/kernel", events: [], account: { shown: 2 }, past: "previous", ...header } as Cells["header"],
    channels,
    records: steps.length,
    steps: own,
    pastSteps: own.map((step) => step - 1),
    learningRates: Float32Array.from(own),
    wallTimes: own,
    end: axisEnd(own, own),
    state: Uint8Array.from(state),
    ...listed(state),
  };
}

describe("columns that are new", () => {
  const had = cells([1, 2], { digest: "d2", before: "00" });

  it("follow those of each channel", () => {
    const tail = cells([3, 5], { before: "d2", digest: "d4", account: { shown: 4 } as Cells["header"]["account"] });
    const whole = cells([1, 2, 3, 5], { ...tail.header });
    expect(joinCells(had, tail)).toEqual(whole);
  });

  it("may have other deltas, and more than a byte tells apart", () => {
    const many = Array.from({ length: 300 }, (_, t) => t);
    const tail = {
      ...cells(
        many.map((t) => t + 3),
        { before: "d2" },
      ),
      ...listed([...many, ...many].map((t) => t / 7)),
    };
    const found = joinCells(had, tail)!;
    expect(found.delta).toBeInstanceOf(Uint16Array);
    expect([0, 1, 2, 301, 302, 303, 304].map((at) => deltaAt(found, at))).toEqual([1, 2, 0, 299 / 7, 11, 12, 0]);
  });

  it("keep what isn't a number", () => {
    const tail = { ...cells([3], { before: "d2" }), ...listed([Number.NaN, Number.POSITIVE_INFINITY]) };
    const found = joinCells(had, tail)!;
    expect([2, 5].map((at) => deltaAt(found, at))).toEqual([Number.NaN, Number.POSITIVE_INFINITY]);
  });

  it("are joined once more", () => {
    const tail = cells([3], { before: "d2", digest: "d3" });
    const more = cells([4], { before: "d3", digest: "d4" });
    expect(joinCells(joinCells(had, tail)!, more)?.steps).toEqual(Float64Array.of(1, 2, 3, 4));
  });

  it("leave everything as it is where there are none", () => {
    expect(joinCells(had, cells([], { before: "d2", digest: "d2" }))).toBe(had);
  });

  it("bring news of the same columns", () => {
    const events = [{ step: 2, kind: "kept" as const, through: 1, elements: 2, text: "kept 1 of 2 weights" }];
    const found = joinCells(had, cells([], { before: "d2", digest: "d2", events }));
    expect(found?.header.events).toEqual(events);
    expect(found?.state).toEqual(had.state);
  });

  it.each([
    ["earlier ones have changed", cells([3], { before: "xx", digest: "d3" })],
    ["the server doesn't say", cells([3], {})],
    ["the channels are others", cells([3], { before: "d2" }, 3)],
    ["the variable is another", cells([3], { before: "d2", variable: "a/bias" })],
  ])("aren't joined where %s", (_, tail) => {
    expect(joinCells(had, tail)).toBeNull();
  });

  it("start from an empty layer", () => {
    const none = cells([], { digest: "00" });
    expect(joinCells(none, cells([1, 2], { before: "00", digest: "d2" }))).toMatchObject({ records: 2, end: 3 });
  });
});
