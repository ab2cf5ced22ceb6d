import { describe, expect, it } from "vitest";
import type { Container, Section } from "../server/container";
import type { RecordsHeader } from "../server/types";
import { figuresIn, readBlock } from "./record";
import { MOVING, NO_DATA, STATES } from "./states";

const NONE = Number.NaN;

/** Three layers of four, two and three channels; the last one is first recorded at 20, and not at 30. */
const answer = (more: Record<string, Section> = {}): Container<RecordsHeader> => ({
  header: {
    run: "r",
    threshold: 1e-4,
    layers: ["a", "b", "c"],
    channels: [4, 2, 3],
    prunable: [40, 10, 30],
  } as RecordsHeader,
  sections: new Map<string, Section>(
    Object.entries({
      steps: Float64Array.of(10, 20, 30),
      wall_times: Float64Array.of(1, 2, 3),
      learning_rates: Float32Array.of(0.5, 0.25, 0.125),
      age: Uint8Array.of(0, 0, 0, /* */ 0, 0, 0, /* */ 0, 0, 10),
      counts: Uint8Array.of(
        ...[0, 4, 0, 0, 0, 0, 0, 0, /* */ 0, 3, 0, 1, 0, 0, 0, 0, /* */ 0, 1, 0, 1, 1, 1, 0, 0],
        ...[0, 0, 0, 2, 0, 0, 0, 0, /* */ 0, 0, 0, 2, 0, 0, 0, 0, /* */ 0, 1, 1, 0, 0, 0, 0, 0],
        ...[3, 0, 0, 0, 0, 0, 0, 0, /* */ 1, 2, 0, 0, 0, 0, 0, 0, /* */ 1, 2, 0, 0, 0, 0, 0, 0],
      ),
      violated: Uint16Array.of(0, 0, 1, /* */ 0, 0, 0, /* */ 0, 1, 1),
      mean_delta: Float32Array.of(0.5, 0.25, 0.125, /* */ NONE, NONE, NONE, /* */ NONE, 1, 1),
      pruned: Float64Array.of(0, 8, 20, /* */ 0, 0, 0, /* */ NONE, 3, 3),
      ...more,
    }),
  ),
});

const block = readBlock(answer());

describe("a block of records", () => {
  it("is read from sections of any type", () => {
    expect(block.age).toBeInstanceOf(Uint8Array);
    expect(Array.from(block.violated)).toEqual([0, 0, 1, 0, 0, 0, 0, 1, 1]);
    expect(block.counts).toHaveLength(3 * 3 * STATES);
    expect([...block.rows]).toEqual([
      ["a", 0],
      ["b", 1],
      ["c", 2],
    ]);
    const narrow = readBlock(answer({ pruned: Uint8Array.of(0, 8, 20, 0, 0, 0, 0, 3, 3) }));
    expect(Array.from(narrow.pruned)).toEqual([0, 8, 20, 0, 0, 0, 0, 3, 3]);
  });

  it("is refused where a section is of the wrong kind or missing", () => {
    expect(() => readBlock(answer({ steps: Uint32Array.of(1, 2, 3) }))).toThrow("section 'steps' as Float64Array");
    const { header, sections } = answer();
    sections.delete("age");
    expect(() => readBlock({ header, sections })).toThrow("section 'age'");
  });
});

describe("figures of layers", () => {
  it("are those of one record, until the next one", () => {
    const expected = {
      step: 20,
      oldest: 20,
      counts: [0, 3, 0, 1, 0, 0, 0, 0],
      total: 4,
      channels: 4,
      violated: 0,
      meanDelta: 0.25,
      pruned: 8,
      prunable: 40,
    };
    expect(figuresIn(block, ["a"], 20)).toEqual(expected);
    expect(figuresIn(block, ["a"], 29.9)).toEqual(expected);
    expect(figuresIn(block, ["a"], 30)?.step).toBe(30);
    expect(figuresIn(block, ["a"], 1e9)?.step).toBe(30);
  });

  it("are made anew at another record of the same layers", () => {
    const layers = ["a"];
    const steps = [20, 30, 20, 10].map((step) => figuresIn(block, layers, step)?.step);
    expect(steps).toEqual([20, 30, 20, 10]);
  });

  it("add up, means by the channels that move", () => {
    expect(figuresIn(block, ["a", "none", "c"], 20)).toEqual({
      step: 20,
      oldest: 20,
      counts: [1, 5, 0, 1, 0, 0, 0, 0],
      total: 6,
      channels: 7,
      violated: 1,
      meanDelta: (3 * 0.25 + 2 * 1) / 5,
      pruned: 11,
      prunable: 70,
    });
  });

  it("tell the newest and the oldest step of their records", () => {
    expect(figuresIn(block, ["a", "b", "c"], 30)).toMatchObject({
      step: 30,
      oldest: 20,
      counts: [1, 4, 1, 1, 1, 1, 0, 0],
      violated: 2,
    });
    expect(figuresIn(block, ["c"], 30)).toMatchObject({ step: 20, oldest: 20 });
  });

  it("leave out the mean of what has none", () => {
    expect(figuresIn(block, ["a", "b"], 30)?.meanDelta).toBe(0.125);
    expect(figuresIn(block, ["b"], 30)?.meanDelta).toBeNaN();
    expect(figuresIn(block, ["b"], 20)?.meanDelta).toBeNaN();
  });

  it("count channels without data, but take no step from a layer that has none", () => {
    expect(figuresIn(block, ["c", "a"], 10)).toEqual({
      step: 10,
      oldest: 10,
      counts: [3, 4, 0, 0, 0, 0, 0, 0],
      total: 4,
      channels: 7,
      violated: 0,
      meanDelta: 0.5,
      pruned: NONE,
      prunable: 70,
    });
  });

  it("are none before the first record, of layers that the run lacks, and of those without any data", () => {
    expect(figuresIn(block, ["a"], 9.9)).toBeNull();
    expect(figuresIn(block, ["none"], 20)).toBeNull();
    expect(figuresIn(block, [], 20)).toBeNull();
    expect(figuresIn(block, ["c"], 10)).toBeNull();
  });

  it("are the sums of any layers", () => {
    const names = ["a", "b", "c"];
    for (let set = 1; set < 8; set++) {
      const rows = [0, 1, 2].filter((row) => set & (1 << row));
      for (const t of [1, 2]) {
        const found = figuresIn(
          block,
          rows.map((row) => names[row]),
          block.steps[t],
        )!;
        const sum = (of: (at: number) => number) => rows.reduce((all, row) => all + of(3 * row + t), 0);
        for (let s = 0; s < STATES; s++) expect(found.counts[s]).toBe(sum((at) => block.counts[at * STATES + s]));
        expect(found.total).toBe(
          sum((at) => (block.counts[at * STATES + NO_DATA] > 0 ? 2 : [4, 2][Math.floor(at / 3)])),
        );
        expect(found.pruned).toBe(sum((at) => block.pruned[at]));
        const moves = (at: number) => (Number.isNaN(block.meanDelta[at]) ? 0 : block.counts[at * STATES + MOVING]);
        const mean = sum((at) => moves(at) && moves(at) * block.meanDelta[at]) / sum(moves);
        if (Number.isNaN(mean)) expect(found.meanDelta).toBeNaN();
        else expect(found.meanDelta).toBeCloseTo(mean, 12);
      }
    }
  });
});
