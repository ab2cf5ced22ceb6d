import { effect, signal } from "@preact/signals";
import { expect, it, vi } from "vitest";
import { deliver, expectAnswer } from "./arrivals";

vi.stubGlobal("document", { documentElement: { dataset: {} } });
const frames: (() => void)[] = [];
vi.stubGlobal("requestAnimationFrame", (one: () => void) => frames.push(one));
let now = 0;
vi.stubGlobal("performance", { now: () => now });
const frame = () => {
  now += 16;
  for (const one of frames.splice(0)) one();
};

it("draws answers of a kind together, and waits for no other kind", () => {
  const seen = signal("");
  const pictures: string[] = [];
  const close = effect(() => void pictures.push(seen.value));
  const [first, second] = [expectAnswer("overview"), expectAnswer("overview")];
  expectAnswer("channel");
  const come = (name: string) => deliver("overview", () => (seen.value += name));
  first();
  come("a");
  frame();
  expect(pictures).toEqual([""]);
  second();
  come("b");
  frame();
  expect(pictures).toEqual(["", "ab"]);
  close();
});

it("waits no longer than a tenth of a second", () => {
  let drawn = 0;
  expectAnswer("layer");
  deliver("layer", () => drawn++);
  for (let i = 0; i < 6; i++) frame();
  expect(drawn).toBe(0);
  frame();
  expect(drawn).toBe(1);
});
