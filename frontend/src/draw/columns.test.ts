import { describe, expect, it } from "vitest";
import type { Cells } from "../data/cells";
import { listed } from "../data/fixtures";
import { FROZEN, MOVING, NO_DATA, NONFINITE, QUIET, STATES, VIOLATED } from "../data/states";
import type { Container, Section } from "../server/container";
import type { OverviewHeader } from "../server/types";
import { addColumns, type Columns, columnsOf, readDrawn, tintOf } from "./columns";

const NONE = Number.NaN;

/** Columns of parts by state code. */
function columns(shares: number[][], meanDelta: number[], more: Partial<Columns> = {}): Columns {
  return {
    starts: Float64Array.from(shares, (_, j) => 10 * j),
    end: 10 * shares.length,
    shares: Float64Array.from(shares.flat()),
    marks: new Uint8Array(shares.length),
    meanDelta: Float64Array.from(meanDelta),
    pruned: null,
    channels: 4,
    prunable: 0,
    ...more,
  };
}

describe("an answer", () => {
  /** Two columns of three layers, in parts of 8; the total is none that could be added up of them. */
  const answer = (sparse: boolean): Container<OverviewHeader> => {
    const sections: Record<string, Section> = {
      first_steps: Float64Array.of(0, 30),
      steps: Float64Array.of(20, 50),
      shares: Uint8Array.of(
        ...[0, 8, 0, 0, 0, 0, 0, 0, /* */ 0, 4, 0, 4, 0, 0, 0, 0],
        ...[0, 0, 0, 0, 8, 0, 0, 0, /* */ 0, 2, 0, 0, 6, 0, 0, 0],
        ...[8, 0, 0, 0, 0, 0, 0, 0, /* */ 0, 0, 0, 0, 0, 8, 0, 0],
      ),
      marks: Uint8Array.of(0, 1, /* */ 0, 0, /* */ 0, 1),
      mean_delta: Float32Array.of(0.5, 0.25, /* */ NONE, 1, /* */ NONE, NONE),
      total_shares: Uint8Array.of(0, 7, 0, 0, 1, 0, 0, 0, /* */ 0, 6, 0, 0, 2, 0, 0, 0),
      total_marks: Uint8Array.of(0, 1),
      total_mean_delta: Float32Array.of(0.125, 0.0625),
    };
    if (sparse) {
      sections.pruned = Float32Array.of(0, 0.5, /* */ 0.25, 0.75, /* */ NONE, NONE);
      sections.total_pruned = Float32Array.of(0.125, 0.375);
    }
    const header = { layers: ["a", "b", "c"], channels: [2, 6, 4], prunable: [10, 30, 0], threshold: 1e-3 };
    return { header: header as OverviewHeader, sections: new Map(Object.entries(sections)) };
  };
  const drawn = readDrawn(answer(true));

  it("tells where its columns lie", () => {
    expect([drawn.threshold, [...drawn.starts], drawn.of(["b"])?.end]).toEqual([1e-3, [0, 30], 60]);
    expect([-1, 0, 29.9, 30, 50, 1e6].map((step) => drawn.span(step))).toEqual([
      null,
      [0, 20],
      [0, 20],
      [30, 50],
      [30, 50],
      [30, 50],
    ]);
  });

  it("gives a layer of its own", () => {
    const { shares, marks, meanDelta, pruned, channels, prunable } = drawn.of(["b"])!;
    expect([...shares]).toEqual([0, 0, 0, 0, 8, 0, 0, 0, 0, 2, 0, 0, 6, 0, 0, 0]);
    expect([...marks]).toEqual([0, 0]);
    expect([...meanDelta]).toEqual([NONE, 1]);
    expect([...pruned!]).toEqual([0.25, 0.75]);
    expect([channels, prunable]).toEqual([6, 30]);
    expect([...drawn.of(["c"])!.marks]).toEqual([0, VIOLATED]);
  });

  it("adds some layers up", () => {
    const { shares, marks, meanDelta, pruned, channels, prunable } = drawn.of(["a", "none", "b"])!;
    // By two and by six channels.
    expect([...shares]).toEqual([0, 16, 0, 0, 48, 0, 0, 0, 0, 20, 0, 8, 36, 0, 0, 0]);
    expect([...marks]).toEqual([0, VIOLATED]);
    expect(meanDelta[0]).toBe(0.5);
    expect(meanDelta[1]).toBeCloseTo((8 * 0.25 + 12 * 1) / 20, 12);
    expect(pruned![0]).toBeCloseTo((10 * 0 + 30 * 0.25) / 40, 12);
    expect(pruned![1]).toBeCloseTo((10 * 0.5 + 30 * 0.75) / 40, 12);
    expect([channels, prunable]).toEqual([8, 40]);
  });

  it("takes the total as it was told, in any order", () => {
    const total = drawn.of(["c", "a", "b"])!;
    expect([...total.shares]).toEqual([0, 7, 0, 0, 1, 0, 0, 0, 0, 6, 0, 0, 2, 0, 0, 0]);
    expect([...total.marks]).toEqual([0, VIOLATED]);
    expect([...total.meanDelta]).toEqual([0.125, 0.0625]);
    expect([...total.pruned!]).toEqual([0.125, 0.375]);
    expect([total.channels, total.prunable]).toEqual([12, 40]);
    expect(drawn.of(["a", "b", "c"])).toBe(total);
  });

  it("has nothing of layers that it lacks, and no pruned weights where none are told", () => {
    expect([drawn.of(["none"]), drawn.of([])]).toEqual([null, null]);
    const dense = readDrawn(answer(false));
    for (const layers of [["a"], ["a", "b"], ["a", "b", "c"]]) expect(dense.of(layers)!.pruned).toBeNull();
  });

  it("makes the same columns once", () => {
    const some = ["a", "b"];
    expect(drawn.of(some)).toBe(drawn.of(some));
  });
});

describe("columns that are added", () => {
  it("weigh the mean by what moves, which is none where nothing does", () => {
    const still = columns([[0, 0, 0, 8, 0, 0, 0, 0]], [NONE]);
    const some = columns([[0, 2, 0, 6, 0, 0, 0, 0]], [0.5], { channels: 12 });
    const other = columns([[0, 4, 0, 4, 0, 0, 0, 0]], [0.25]);
    const unknown = columns([[0, 8, 0, 0, 0, 0, 0, 0]], [NONE], { channels: 1 });
    expect(addColumns([still, some, other, unknown]).meanDelta[0]).toBeCloseTo((24 * 0.5 + 16 * 0.25) / 40, 12);
    expect(addColumns([still, still]).meanDelta[0]).toBeNaN();
  });

  it("know no share of pruned weights where none can be pruned, as a layer alone doesn't", () => {
    const bare = columns([[0, 8, 0, 0, 0, 0, 0, 0]], [1], { pruned: Float64Array.of(NONE) });
    expect([...addColumns([bare, bare]).pruned!]).toEqual([NONE]);
    const half = columns([[0, 8, 0, 0, 0, 0, 0, 0]], [1], { pruned: Float64Array.of(0.5), prunable: 10 });
    expect([...addColumns([bare, half]).pruned!]).toEqual([0.5]);
  });

  it("leave their parts as they were", () => {
    const one = columns([[0, 8, 0, 0, 0, 0, 0, 0]], [1], {
      marks: Uint8Array.of(VIOLATED),
      pruned: Float64Array.of(0.5),
    });
    const before = structuredClone(one);
    addColumns([one, columns([[0, 0, 0, 8, 0, 0, 0, 0]], [NONE], { marks: Uint8Array.of(VIOLATED) })]);
    expect(one).toEqual(before);
    expect(addColumns([one])).toBe(one);
  });
});

it("makes a column of each record of a layer", () => {
  const steps = Float64Array.of(5, 15, 25);
  const cells: Cells = {
    header: {} as Cells["header"],
    channels: 2,
    records: 3,
    steps,
    pastSteps: steps,
    learningRates: new Float32Array(3),
    wallTimes: steps,
    end: 35,
    state: Uint8Array.of(MOVING, NONFINITE, FROZEN | VIOLATED, /* */ NO_DATA, MOVING, QUIET),
    ...listed([0.5, 0.25, 0, 0, 0.75, 0, 0]),
  };
  const found = columnsOf(cells);
  expect([[...found.starts], found.end, found.channels, found.pruned]).toEqual([[5, 15, 25], 35, 2, null]);
  expect([...found.shares]).toEqual([
    1, 1, 0, 0, 0, 0, 0, 0, /* */ 0, 1, 0, 0, 0, 0, 0, 1, /* */ 0, 0, 0, 1, 1, 0, 0, 0,
  ]);
  expect([...found.marks]).toEqual([0, 0, VIOLATED]);
  expect([...found.meanDelta]).toEqual([0.5, 0.75, NONE]);
});

describe("a tint", () => {
  const two = columns(
    [
      [0, 3, 0, 1, 0, 0, 0, 0],
      [2, 1, 0, 0, 0, 1, 0, 0],
    ],
    [0.1, 0.5],
    { marks: Uint8Array.of(VIOLATED, 0), pruned: Float64Array.of(0, 0.5), prunable: 40 },
  );

  it("is a share of what has data, over the columns that it pools", () => {
    expect(two.shares).toHaveLength(2 * STATES);
    expect(tintOf(two, 0, 1, "moving")).toBe(0.75);
    expect(tintOf(two, 1, 2, "moving")).toBe(0.5);
    expect(tintOf(two, 0, 2, "moving")).toBeCloseTo(4 / 6, 12);
    expect(tintOf(two, 0, 2, "pruned")).toBeCloseTo(1 / 6, 12);
    expect(tintOf(two, 0, 2, "frozen")).toBe(0);
  });

  it("is the share of columns that are violated, of weights that are pruned, and the mean of what moves", () => {
    expect([0, 1].map((j) => tintOf(two, j, j + 1, "violated"))).toEqual([1, 0]);
    expect(tintOf(two, 0, 2, "violated")).toBe(0.5);
    expect(tintOf(two, 0, 2, "sparsity")).toBe(0.25);
    expect(tintOf(two, 0, 2, "delta")).toBeCloseTo((3 * 0.1 + 0.5) / 4, 12);
  });

  it("is none where nothing is known", () => {
    const none = columns([[4, 0, 0, 0, 0, 0, 0, 0]], [NONE]);
    for (const which of ["moving", "violated", "sparsity", "delta"] as const)
      expect(tintOf(none, 0, 1, which)).toBeNaN();
    expect(tintOf({ ...two, pruned: Float64Array.of(0.5, NONE) }, 0, 2, "sparsity")).toBeNaN();
  });
});
