import { signal } from "@preact/signals";
import { expect, it, vi } from "vitest";
import { follow } from "./follow";
import { afterFrames, pending } from "./idle";

const frames: (() => void)[] = [];
vi.stubGlobal("requestAnimationFrame", (one: () => void) => frames.push(one));
const dataset: Record<string, string> = {};
vi.stubGlobal("document", { documentElement: { dataset } });
const frame = () => {
  for (const one of frames.splice(0)) one();
};

it("follows some frames later, to where the source is by then", () => {
  const [source, follower] = [signal(1), signal(0)];
  follow(follower, source, 2);
  expect(follower.value).toBe(1);
  source.value = 2;
  frame();
  source.value = 3;
  expect(follower.value).toBe(1);
  frame();
  expect(follower.value).toBe(3);
  source.value = 4;
  frame();
  frame();
  expect(follower.value).toBe(4);
});

it("counts what waits for a frame as under way, but not as loading", () => {
  let done = 0;
  afterFrames(3, () => done++);
  for (let i = 0; i < 2; i++) frame();
  expect([done, pending.value, dataset.pastnetIdle]).toEqual([0, 0, "false"]);
  frame();
  expect(done).toBe(1);
  expect(dataset.pastnetIdle).toBe("false");
  for (let i = 0; i < 2; i++) frame();
  expect(dataset.pastnetIdle).toBe("true");
});
