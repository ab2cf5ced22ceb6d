import { beforeEach, expect, it, vi } from "vitest";
import type { LayerInfo, RunInfo } from "../server/types";
import { activeRun, layerIn, shownRuns, variableOf, viewedRuns } from "./runs";
import { runName, variableId } from "./store";

vi.mock("./store", async () => {
  const { signal } = await import("@preact/signals");
  const anything = { pattern: null, text: "" };
  const initial = { view: "layer", layerId: "q", runName: "plain", variableId: null, hidden: [], hostRuns: [] };
  const others = { page: {}, dark: false, grouping: anything, layerFilter: anything, runFilter: anything, zoom: null };
  return Object.fromEntries(Object.entries({ ...initial, ...others }).map(([name, value]) => [name, signal(value)]));
});
vi.mock("../draw/text", () => ({ pageTextWidth: (text: string) => text.length }));
vi.mock("./resource", async () => {
  const { signal } = await import("@preact/signals");
  const layer = (...ids: string[]) =>
    ({ id: "q", variable: "q/w", variables: ids.map((id) => ({ id })) }) as unknown as LayerInfo;
  const run = (name: string, network: number) =>
    ({ name, network, tb_runs: [], steps: [[1, 1, 2]], records: 2, first_step: 1, last_step: 2 }) as unknown as RunInfo;
  const networks = [{ layers: [layer("q/w", "q/a")] }, { layers: [layer("q/w", "q/a", "q/b")] }];
  const value = { runs: [run("plain", 0), run("switched", 1)], networks };
  return { resource: () => signal({ value, error: null, loading: false, at: 0 }) };
});

const choose = (id: string | null) => Object.assign(variableId, { value: id });

beforeEach(() => {
  choose(null);
  Object.assign(runName, { value: "plain" });
});

const seen = () => [variableOf("q"), activeRun.value?.name, viewedRuns.value.map(({ name }) => name)];

it("shows a variable of the runs that have it, and of no other", () => {
  expect(seen()).toEqual([null, "plain", ["plain", "switched"]]);
  choose("q/a");
  expect(seen()).toEqual(["q/a", "plain", ["plain", "switched"]]);
  choose("q/b");
  expect(seen()).toEqual(["q/b", "switched", ["switched"]]);
  expect(shownRuns.value.map((each) => layerIn(each, "q") !== undefined)).toEqual([false, true]);
  expect(variableOf("k")).toBeNull();
});

it("shows the main variable where no run has the one in the address", () => {
  choose("q/c");
  expect(seen()).toEqual([null, "plain", ["plain", "switched"]]);
});
