import { describe, expect, it } from "vitest";
import type { Container, Section } from "../wire/container";
import type { OverviewHeader } from "../wire/types";
import { readOverview, sumOf } from "./overview";
import { STATES } from "./states";

const layers = ["a", "b", "c"];

/** Three layers in two columns, of 1, 2 and 3 channels that all move. */
function answer(totals: Record<string, Section> = {}): Container<OverviewHeader> {
  const counts = layers.flatMap((_, l) => [0, 1].flatMap(() => [0, l + 1, 0, 0, 0, 0]));
  const sections = {
    first_steps: Float64Array.of(1, 2),
    steps: Float64Array.of(1, 2),
    wall_times: new Float64Array(2),
    learning_rates: new Float32Array(2),
    counts: Uint8Array.from(counts),
    violated: Uint8Array.of(0, 0, 0, 1, 0, 2),
    nonfinite: new Uint8Array(6),
    mean_delta: Float32Array.of(0.5, 0.5, 0.5, 0.5, 0.25, 0.25),
    pruned: Uint16Array.of(0, 0, 0, 300, 0, 5),
    ...totals,
  };
  const header = { layers, prunable: [10, 1000, 30], accounts: [], notes: [] };
  return { header: header as unknown as OverviewHeader, sections: new Map(Object.entries(sections)) };
}

const totals = {
  total_counts: Uint16Array.from([0, 1].flatMap(() => [0, 6, 0, 0, 0, 0])),
  total_violated: Uint8Array.of(0, 3),
  total_nonfinite: new Uint8Array(2),
  total_mean_delta: Float32Array.of(0.375, 0.375),
  total_pruned: Uint16Array.of(0, 305),
};

describe("readOverview", () => {
  it("gives each layer its own numbers, of one type", () => {
    const series = readOverview(answer()).series.get("b")!;
    expect(series.counts).toEqual(Uint32Array.from([0, 2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0]));
    expect(series.violated).toEqual(Uint32Array.of(0, 1));
    expect(series.pruned).toEqual(Float64Array.of(0, 300));
    expect([series.channels, series.prunable]).toEqual([2, 1000]);
    expect(readOverview(answer()).series.get("d")).toBeUndefined();
  });

  it("says where weights are pruned", () => {
    expect(readOverview(answer()).sparse).toBe(true);
    expect(readOverview(answer({ pruned: new Uint8Array(6) })).sparse).toBe(false);
  });
});

describe("sumOf", () => {
  const plain = ({ counts, violated, nonfinite, meanDelta, pruned }: NonNullable<ReturnType<typeof sumOf>>) =>
    [counts, violated, nonfinite, meanDelta, pruned!].map((part) => Array.from(part));

  it("takes the server's sum of all layers, which is that of the page", () => {
    const told = readOverview(answer(totals));
    const wide = ["other", ...layers];
    expect(sumOf(told, wide)).toBe(told.total);
    const added = sumOf(readOverview(answer()), wide)!;
    expect(plain(told.total!)).toEqual(plain(added));
    expect([told.total!.channels, told.total!.prunable]).toEqual([added.channels, added.prunable]);
    expect([added.channels, added.prunable]).toEqual([6, 1040]);
  });

  it("adds up what is asked for, once", () => {
    const overview = readOverview(answer(totals));
    const some = ["a", "c"];
    const sum = sumOf(overview, some)!;
    expect(sum.counts).toHaveLength(2 * STATES);
    expect(Array.from(sum.violated)).toEqual([0, 2]);
    expect(sumOf(overview, some)).toBe(sum);
    expect(sumOf(overview, ["other"])).toBeNull();
    expect(sumOf(overview, ["other", "more"])).toBeNull();
  });
});
