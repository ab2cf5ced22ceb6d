import { expect, it, vi } from "vitest";
import { rateText, rateTitle } from "./lanes";
import type { Run } from "./runs";

const rates = vi.hoisted(() => (own: number) => ({
  value: { steps: Float64Array.of(10, 20), learningRates: Float32Array.of(own, Number.NaN) },
  error: null,
}));
vi.mock("./at", () => ({ blockAt: () => rates(0.5) }));
vi.mock("./answers", () => ({}));

const run = { name: "r" } as Run;

it("says that a rate is the highest of several", () => {
  expect([rateTitle(), rateTitle(true)]).toEqual(["learning rate", "highest learning rate"]);
});

it("gives the rate of a run, or that of a layer", () => {
  const layer = { ...rates(0.25), loading: false, at: 0 };
  expect([rateText(run, 15), rateText(run, 15, layer)]).toEqual(["0.5", "0.25"]);
  expect([rateText(run, 25), rateText(run, 5, layer)]).toEqual(["–", "–"]);
});
