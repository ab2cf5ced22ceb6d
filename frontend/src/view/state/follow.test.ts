import { effect, signal } from "@preact/signals";
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

it("follows from the next frame on, one signal a frame, to where the source is by then", () => {
  const source = signal(1);
  const followers = [signal(0), signal(0), signal(0)];
  for (const one of followers) follow(one, source);
  const seen = () => followers.map((one) => one.value);
  expect(seen()).toEqual([1, 1, 1]);
  source.value = 2;
  frame();
  expect(seen()).toEqual([1, 1, 1]);
  frame();
  expect(seen()).toEqual([2, 1, 1]);
  source.value = 3;
  frame();
  expect(seen()).toEqual([2, 3, 1]);
  frame();
  // Who was behind longest is first: a pointer that never rests leaves nobody behind.
  expect(seen()).toEqual([2, 3, 3]);
  frame();
  expect(seen()).toEqual([3, 3, 3]);
});

it("leaves alone what the source has come back to", () => {
  const [source, follower] = [signal(1), signal(0)];
  let changes = -1;
  follow(follower, source);
  effect(() => void [follower.value, changes++]);
  source.value = 2;
  source.value = 1;
  for (let i = 0; i < 3; i++) frame();
  expect([follower.value, changes]).toEqual([1, 0]);
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
