import { effect, signal } from "@preact/signals";
import { expect, it, vi } from "vitest";
import { follow, follower } from "./following";
import { afterFrames, loading } from "./frames";

const frames: (() => void)[] = [];
vi.stubGlobal("requestAnimationFrame", (one: () => void) => frames.push(one));
const dataset: Record<string, string> = {};
vi.stubGlobal("document", { documentElement: { dataset } });
const frame = () => {
  for (const one of frames.splice(0)) one();
};

it("follows from the next frame on, one signal a frame, to where the source is by then", () => {
  const source = signal(1);
  const followers = [follower(0), follower(0), follower(0)];
  for (const one of followers) {
    follow(one, source);
    one.subscribe(() => {});
  }
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
  const [source, one] = [signal(1), follower(0)];
  let changes = -1;
  follow(one, source);
  effect(() => void [one.value, changes++]);
  source.value = 2;
  source.value = 1;
  for (let i = 0; i < 3; i++) frame();
  expect([one.value, changes]).toEqual([1, 0]);
});

it("follows at once, and takes no frame, while nothing shows it", () => {
  const [source, one, other] = [signal(1), follower(0), follower(0)];
  follow(one, source);
  follow(other, source);
  const leave = one.subscribe(() => {});
  source.value = 2;
  expect([one.value, other.value]).toEqual([1, 2]);
  leave();
  source.value = 3;
  expect([one.value, other.value]).toEqual([3, 3]);
  for (let i = 0; i < 3; i++) frame();
  expect([one.value, other.value]).toEqual([3, 3]);
});

it("counts what waits for a frame as under way, but not as loading", () => {
  let done = 0;
  afterFrames(3, () => done++);
  for (let i = 0; i < 2; i++) frame();
  expect([done, loading.value, dataset.pastnetIdle]).toEqual([0, false, "false"]);
  frame();
  expect(done).toBe(1);
  expect(dataset.pastnetIdle).toBe("false");
  for (let i = 0; i < 2; i++) frame();
  expect(dataset.pastnetIdle).toBe("true");
});

it("waits for what the value is shown with, but not for long", () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const [source, one, ready] = [signal(1), follower(0), signal(true)];
  follow(one, source, { ready });
  one.subscribe(() => {});
  ready.value = false;
  source.value = 2;
  for (let i = 0; i < 3; i++) frame();
  expect(one.value).toBe(1);
  ready.value = true;
  for (let i = 0; i < 3; i++) frame();
  expect(one.value).toBe(2);
  ready.value = false;
  source.value = 3;
  vi.advanceTimersByTime(200);
  for (let i = 0; i < 3; i++) frame();
  expect(one.value).toBe(3);
  vi.useRealTimers();
});
