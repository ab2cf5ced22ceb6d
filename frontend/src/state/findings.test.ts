import { beforeEach, expect, it, vi } from "vitest";
import type { Finding } from "../server/types";
import { findingsOf } from "./answers";
import {
  allFindings,
  findingOrder,
  findingsAnswer,
  listedFindings,
  openFinding,
  runsLeftOut,
  shownFindings,
} from "./findings";
import { type Run, runNamed } from "./runs";
import { drill } from "./store";

const runs = vi.hoisted(() => ({ names: ["a", "b"] }));
vi.mock("./answers", () => ({ MOST_RUNS: 3, findingsOf: vi.fn() }));
vi.mock("./runs", async () => {
  const { signal } = await import("@preact/signals");
  const shownRuns = signal(runs.names.map((name) => ({ name })));
  return { shownRuns, layerIn: vi.fn(), runNamed: vi.fn() };
});
vi.mock("./store", async () => {
  const { signal } = await import("@preact/signals");
  return { drill: vi.fn(), layerFilter: signal("") };
});

const many = Array.from(
  { length: 15 },
  (_, n) => ({ kind: `kind${n}`, layers: [], first_step: 15 - n }) as unknown as Finding,
);

beforeEach(() => {
  vi.mocked(findingsOf).mockReturnValue({ value: { schema: 5, findings: many }, error: null, loading: false, at: 0 });
  allFindings.value = false;
});

it("asks for all shown runs together", () => {
  expect(findingsAnswer.value?.value?.findings).toBe(many);
  expect(vi.mocked(findingsOf).mock.calls).toEqual([[["a", "b"]]]);
  expect(runsLeftOut.value).toBe(0);
});

it("shows the first twelve until all are asked for, in the order of the server or by step", () => {
  expect(shownFindings.value).toEqual(many.slice(0, 12));
  expect(listedFindings.value).toHaveLength(15);
  findingOrder.value = "step";
  expect(shownFindings.value.map(({ first_step }) => first_step)).toEqual(Array.from({ length: 12 }, (_, n) => n + 1));
  allFindings.value = true;
  expect(shownFindings.value).toHaveLength(15);
});

it("opens what a finding links to: a variable of the layer, where it is about that", () => {
  vi.mocked(runNamed).mockReturnValue({ name: "a" } as Run);
  const link = { view: "network", run: "a", layer: null, channel: null, step: 5 };
  const opened = { view: "network", run: "a", layer: null, channel: null, step: 5, zoom: null };
  openFinding({ link } as Finding);
  expect(drill).toHaveBeenLastCalledWith({ ...opened, variable: null });
  openFinding({ link: { ...link, variable: "bn/mean" } } as Finding);
  expect(drill).toHaveBeenLastCalledWith({ ...opened, variable: "bn/mean" });
});
