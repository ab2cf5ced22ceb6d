import { describe, expect, it } from "vitest";
import type { Container } from "../server/container";
import type { OverlapAnswer, OverlapLayersHeader, OverlapPair, OverlapRun } from "../server/types";
import { toCsv } from "./csv";
import {
  choosePair,
  formatOverlap,
  mostDifferent,
  numbersText,
  pairOf,
  pairTexts,
  readLayerOverlaps,
  setText,
  shareTitle,
} from "./overlap";

const run = (name: string, kept: number | null, extra: Partial<OverlapRun> = {}): OverlapRun => ({
  name,
  step: 10,
  kept,
  elements: 100,
  ...extra,
});
const pair = (extra: Partial<OverlapPair> = {}): OverlapPair => ({
  a: 0,
  b: 1,
  comparable: true,
  reason: null,
  overlap: 0.25,
  chance: 0.2,
  intersection: 20,
  union: 80,
  layers: 2,
  unmatched: 0,
  ...extra,
});

describe("overlap by layer", () => {
  const header = { layers: ["a", "b"], elements: [10, 40] } as OverlapLayersHeader;
  const container: Container<OverlapLayersHeader> = {
    header,
    sections: new Map<string, Float64Array>([
      ["steps", Float64Array.of(19)],
      ["overlap", Float64Array.of(Number.NaN, 0.25)],
      ["chance", Float64Array.of(Number.NaN, 0.5)],
      ["kept", Float64Array.of(6, 30)],
      ["other_kept", Float64Array.of(Number.NaN, 4)],
      ["both", Float64Array.of(Number.NaN, 3)],
    ]),
  };

  it("reads each layer at the step of the answer", () => {
    const { NaN: NONE } = Number;
    const found = readLayerOverlaps(container);
    expect([found.step, found.header]).toEqual([19, header]);
    expect([...found.layers]).toEqual([
      ["a", { overlap: NONE, chance: NONE, kept: 6, otherKept: NONE, both: NONE, elements: 10 }],
      ["b", { overlap: 0.25, chance: 0.5, kept: 30, otherKept: 4, both: 3, elements: 40 }],
    ]);
  });

  it("is refused where a section is missing", () => {
    const sections = new Map(container.sections);
    sections.delete("other_kept");
    expect(() => readLayerOverlaps({ header, sections })).toThrow("section 'other_kept'");
  });
});

describe("words and numbers of an overlap", () => {
  it("reads 0 and 1 only where it is exactly that", () => {
    expect([0, 0.004, 0.005, 0.414, 0.994, 0.996, 1, null, Number.NaN].map(formatOverlap)).toEqual(
      ["0.00", "<.01", "0.01", "0.41", "0.99", ">.99", "1.00", "–", "–"], // what rounds away says so
    );
  });

  it("finds a pair from either side", () => {
    const answer = { runs: [run("x", 1), run("y", 2), run("z", 3)], pairs: [pair({ a: 0, b: 2 })] } as OverlapAnswer;
    expect(pairOf(answer, "z", "x")).toBe(answer.pairs[0]);
    expect(pairOf(answer, "x", "z")).toBe(answer.pairs[0]);
    expect([pairOf(answer, "x", "y"), pairOf(answer, "x", "x"), pairOf(answer, "no", "x")]).toEqual([null, null, null]);
  });

  it("names what is counted", () => {
    expect(setText("weights", "kept")).toBe("remaining weights");
    expect(setText("channels", "kept")).toBe("remaining channels");
    expect(setText("weights", "trainable")).toBe("trainable weights");
    expect(shareTitle("weights", "kept")).toBe("Weights remaining");
    expect(shareTitle("channels", "kept")).toBe("Channels remaining");
    expect(shareTitle("channels", "trainable")).toBe("Channels trainable");
  });

  it("says what a run without masks makes of the number", () => {
    const texts = (a: number, b: number, extra = {}) =>
      pairTexts(pair(extra), [run("x", a), run("y", b)], "weights", "kept");
    expect(texts(60, 40)).toEqual(["20 of 80 remaining weights are in both."]);
    expect(texts(100, 40)[1]).toBe("Nothing is pruned in x, so the overlap is just the share remaining in y.");
    expect(texts(40, 100)[1]).toBe("Nothing is pruned in y, so the overlap is just the share remaining in x.");
    expect(texts(100, 100)[1]).toBe("Nothing is pruned in either run, so the overlap is 1.00.");
    expect(texts(0, 0, { intersection: 0, union: 0 })[1]).toBe(
      "Nothing remains in either run: the overlap of two empty sets counts as 1.00.",
    );
    expect(texts(60, 40, { unmatched: 3 })[1]).toBe("Layers without a counterpart of the same shape: 3.");
  });

  it("says why two runs can't be compared", () => {
    const said = (reason: OverlapPair["reason"], x: OverlapRun, y: OverlapRun) =>
      pairTexts(pair({ comparable: false, reason, overlap: null }), [x, y], "weights", "kept");
    const [x, y] = [run("x", 5), run("y", 6)];
    expect(said("origin", x, y)).toEqual(["Not comparable: different initialization."]);
    expect(said("layers", x, y)).toEqual(["Not comparable: no layer in common."]);
    expect(said("no record", run("x", null, { step: null }), y)).toEqual([
      "Not comparable: no record at this step (x).",
    ]);
    expect(said("unknown", run("x", null), run("y", null))).toEqual(["Not comparable: masks not known (x, y)."]);
  });

  it("gives the number and its value by chance, or the reason for there being none", () => {
    expect(numbersText(pair())).toBe("0.25, by chance 0.20");
    expect(numbersText(pair({ reason: "unknown", overlap: null, chance: null }))).toBe("masks not known");
  });

  it("writes CSV that reads back", () => {
    const records = [
      { otherRun: 'a,"b"', n: 0.5 },
      { otherRun: "c\nd", n: Number.NaN },
      { otherRun: "", n: null },
    ];
    expect(toCsv(records)).toBe('other_run,n\r\n"a,""b""",0.5\r\n"c\nd",\r\n,\r\n');
    expect(toCsv([])).toBe("\r\n");
  });
});

describe("choosePair", () => {
  const runs = ["a1", "b1", "b2", "a2", "c"].map((name) => ({ name }));
  const chosen = (first: string | null, second: string | null, list = runs) =>
    choosePair(list, first, second, (a, b) => a.name[0] === b.name[0])?.map(({ name }) => name);

  it.each([
    ["the first two that can be compared", null, null, ["a1", "a2"]],
    ["a chosen run and one like it", "b1", null, ["b1", "b2"]],
    ["a chosen run and one like it before it", "b2", null, ["b2", "b1"]],
    ["a chosen run that nothing compares with, and the next", "c", null, ["c", "a1"]],
    ["two chosen runs, whether they can be compared or not", "c", "b1", ["c", "b1"]],
    ["what there is where a chosen run is gone", "x", "y", ["a1", "a2"]],
    ["no run with itself", "b1", "b1", ["b1", "b2"]],
  ])("is %s", (_, first, second, expected) => {
    expect(chosen(first, second)).toEqual(expected);
  });

  it("is the first two where none can be compared, and none of a single run", () => {
    expect(chosen(null, null, [runs[0], runs[1], runs[4]])).toEqual(["a1", "b1"]);
    expect(chosen(null, null, [runs[0]])).toBeUndefined();
  });
});

describe("mostDifferent", () => {
  const pair = (a: number, b: number, overlap: number | null) => ({ a, b, overlap }) as OverlapPair;
  const runs = ["x", "y", "z"].map((name) => ({ name })) as OverlapAnswer["runs"];
  const answer = (...pairs: OverlapPair[]) => ({ runs, pairs }) as OverlapAnswer;

  it("is the pair of the least overlap, of all or with a run", () => {
    const all = answer(pair(0, 1, 0.5), pair(0, 2, 0.25), pair(1, 2, 0.4));
    expect(mostDifferent(all, null)).toEqual(["x", "z"]);
    expect(mostDifferent(all, "z")).toEqual(["z", "x"]);
    expect(mostDifferent(all, "y")).toEqual(["y", "z"]);
    expect(mostDifferent(all, "elsewhere")).toBeNull();
  });

  it("is none where nothing differs or nothing is known", () => {
    expect(mostDifferent(answer(pair(0, 1, 1), pair(0, 2, null)), null)).toBeNull();
  });
});
