import { describe, expect, it } from "vitest";
import { DEFAULTS, fromPairs, type PageState, patched, toPairs } from "./urlstate";

const FULL: PageState = {
  view: "layer",
  layer: "block/a&b=c#%2e",
  run: "<script>,run",
  variable: "x/bias",
  channel: 0,
  step: 0,
  threshold: 2.5e-5,
  mode: "delta",
  order: "held",
  measure: "violated",
  hidden: ["a,b", "c%"],
  closed: ["block", "עברית"],
  runFilter: "^a|b$",
  grouping: "_s\\d+$",
  sorted: true,
  layerFilter: "(",
  zoom: [10, 200],
  audit: "a&b",
  baseline: "a~b",
  versus: true,
  other: "עברית",
  unit: "channels",
  maskKind: "trainable",
  rowsOf: "c%",
  pins: [3, 0],
  rowZoom: [4, 20],
  place: "x/y~1",
  change: "cosine",
  scalar: "train: epoch_loss",
};

describe("the URL", () => {
  it("gives back what was put in", () => {
    expect(fromPairs(toPairs(FULL))).toEqual(FULL);
  });

  it("keeps steps below 0, but no such rows", () => {
    const below: PageState = { ...DEFAULTS, step: -5, zoom: [-20, -1] };
    expect(fromPairs(toPairs(below))).toEqual(below);
    expect(fromPairs(new Map([["zr", "-2~4"]]))).toEqual(DEFAULTS);
  });

  it("leaves defaults out", () => {
    expect([...toPairs(DEFAULTS)]).toEqual([]);
    expect(fromPairs(new Map())).toEqual(DEFAULTS);
  });

  it.each([
    ["v", "nothing"],
    ["c", "-1"],
    ["c", "x"],
    ["s", "NaN"],
    ["th", "0"],
    ["th", "7"],
    ["m", ""],
    ["z", "9~3"],
    ["z", "1~"],
    ["x", "%"],
    ["p", "-1~x"],
    ["zr", "4~4"],
    ["u", "all"],
    ["mk", ""],
    ["vs", "yes"],
    ["fm", "length"],
  ])("falls back to the default for %s=%s", (key, value) => {
    expect(fromPairs(new Map([[key, value]]))).toEqual(DEFAULTS);
  });
});

describe("a change of the state", () => {
  const here: PageState = { ...DEFAULTS, layer: "a", pins: [3], rowZoom: [4, 20], zoom: [1, 9] };

  it("leaves pins and the zoom of rows with their layer", () => {
    expect(patched(here, { layer: "b" })).toEqual({ ...here, layer: "b", pins: [], rowZoom: null });
    expect(patched(here, { variable: "a/bias" })).toMatchObject({ pins: [], rowZoom: null });
    expect(patched(here, { layer: "a", step: 5 })).toEqual({ ...here, step: 5 });
    expect(patched(here, { layer: "b", pins: [1], rowZoom: [0, 2] })).toMatchObject({ pins: [1], rowZoom: [0, 2] });
  });

  it("leaves the zoom of rows with their order", () => {
    expect(patched(here, { order: "index" })).toMatchObject({ pins: [3], rowZoom: null, zoom: [1, 9] });
    expect(patched(here, { rowsOf: "other" })).toMatchObject({ pins: [3], rowZoom: null });
    expect(patched(here, { run: "other" })).toMatchObject({ pins: [3], rowZoom: [4, 20] });
  });
});
