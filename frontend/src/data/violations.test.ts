import { describe, expect, it } from "vitest";
import type { Violation } from "../server/types";
import {
  auditOf,
  byLayer,
  type Column,
  causeText,
  elementsText,
  farText,
  shortVariable,
  sortViolations,
  sparsityText,
  summaryText,
} from "./violations";

const entry = (patch: Partial<Violation>): Violation => ({
  layer: "a",
  variable: "a/kernel",
  channel: 0,
  first_step: 10,
  last_step: 20,
  elements: 1,
  held: 9,
  largest: 0.5,
  cause: "momentum",
  text: "",
  ...patch,
});

describe("one violation in words", () => {
  it.each([
    ["weight_decay", "weight decay"],
    ["cosmic_rays", "cosmic rays"],
    ["constructor", "constructor"],
  ])("names the cause %s", (cause, words) => {
    expect(causeText(cause)).toBe(words);
  });

  it("says how far and how much", () => {
    expect([farText(entry({ largest: 2.5e-4 })), farText(entry({ largest: null }))]).toEqual([
      "2.5×10⁻⁴",
      "not finite",
    ]);
    expect(elementsText(entry({ elements: 1200, held: 4096 }))).toBe("1,200 of 4,096");
  });

  it("shortens a variable only below its own layer", () => {
    expect(shortVariable(entry({}))).toBe("kernel");
    expect(shortVariable(entry({ variable: "ab/kernel" }))).toBe("ab/kernel");
  });
});

describe("sortViolations", () => {
  const list = [
    entry({ layer: "conv10", channel: 3, largest: null }),
    entry({ layer: "conv9", channel: 2, largest: 1, last_step: 30 }),
    entry({ layer: "conv9", channel: 1, largest: 1, first_step: 40, elements: 0 }),
  ];
  const order = (by: Column, descending: boolean) => sortViolations(list, by, descending).map((one) => one.channel);

  it.each([
    ["first", false, [3, 2, 1]],
    ["first", true, [1, 3, 2]],
    ["last", true, [2, 3, 1]],
    ["layer", false, [2, 1, 3]],
    ["channel", false, [1, 2, 3]],
    ["largest", true, [3, 2, 1]],
    ["largest", false, [2, 1, 3]],
    ["elements", false, [1, 3, 2]],
    ["cause", false, [3, 2, 1]],
    ["variable", true, [3, 2, 1]],
  ] as const)("by %s, descending %s", (by, descending, expected) => {
    expect(order(by, descending)).toEqual(expected);
  });

  it("leaves the list as it was", () => {
    order("layer", true);
    expect(list[0].layer).toBe("conv10");
  });
});

describe("byLayer", () => {
  const found = byLayer([
    entry({ layer: "b", variable: "b/bias" }),
    entry({ layer: "b", variable: "b/kernel", first_step: 11 }),
    entry({ first_step: 12 }),
    entry({ first_step: 40 }),
  ]);

  it("counts a channel of a layer once and keeps the earliest", () => {
    expect(found.get("a")).toMatchObject({ channels: 1, first: { first_step: 12 } });
    expect(auditOf(found, ["a", "b"])).toMatchObject({ channels: 2, first: { variable: "b/bias" } });
    expect(auditOf(found, ["c"])).toBeNull();
  });
});

describe("summaryText", () => {
  it("counts a channel once, however often it was violated", () => {
    const twice = [entry({}), entry({ first_step: 1200 })];
    expect(summaryText(twice)).toBe(
      "1 channel of 1 layer changed while frozen or pruned, first at step 10. Likely cause: momentum left in the optimizer's slots.",
    );
  });

  it("names the three most frequent causes", () => {
    const list = ["ema", "ema", "momentum", "momentum", "loaded", "loaded", "unknown", "bypassed"].map(
      (cause, channel) => entry({ cause, channel }),
    );
    expect(summaryText(list)).toMatch(/Likely causes: 2 × the .*, 2 × momentum.*, 2 × weights were .*, 2 × others\.$/);
  });

  it("ranks the causes", () => {
    const list = [
      entry({}),
      entry({ layer: "b", variable: "b/kernel", cause: "ema" }),
      entry({ layer: "b", variable: "b/bias", cause: "ema", first_step: 7 }),
      entry({ layer: "b", variable: "b/kernel", channel: 1, cause: "ema" }),
    ];
    expect(summaryText(list)).toBe(
      "3 channels of 2 layers changed while frozen or pruned, first at step 7. Likely causes: 2 × the optimizer's moving average overwrote them, 1 × momentum left in the optimizer's slots.",
    );
  });
});

it.each([
  [800, 1000, "80.0%"],
  [0, 1000, "0%"],
  [1000, 1000, "100%"],
  [999_999, 1_000_000, ">99.9%"],
  [9_999, 10_000, ">99.9%"],
  [999, 1000, "99.9%"],
  [12_399, 100_000, "12.4%"],
  [Number.NaN, 1000, null],
  [0, 0, null],
])("%d pruned of %d reads %s", (pruned, prunable, text) => {
  expect(sparsityText({ pruned, prunable })).toBe(text);
});
