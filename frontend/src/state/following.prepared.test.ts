import { beforeEach, expect, it, vi } from "vitest";
import { AROUND } from "../data/rowbox";

const frames: (() => void)[] = [];
vi.stubGlobal("requestAnimationFrame", (one: () => void) => frames.push(one));
vi.stubGlobal("document", { documentElement: { dataset: {} } });
const frame = () => {
  for (const one of frames.splice(0)) one();
};
vi.mock("./runs", () => ({}));
vi.mock("./store", () => ({}));
const { prepared } = await import("./following");
const { scrollBack, scrollDown, scrolled, stripBlock } = await import("./viewport");

/** Prepares a block in three steps, each of which has all that a frame can do. */
function slowly(steps: number[]) {
  return function* (block: number) {
    for (let i = 0; i < 3; i++) {
      steps.push(block);
      const end = performance.now() + 4;
      while (performance.now() < end);
      yield;
    }
  };
}

beforeEach(() => {
  scrollBack();
  while (frames.length > 0) frame();
});

it("shows what is scrolled to in the frame after all of it is prepared, some steps a frame", () => {
  const steps: number[] = [];
  const end = prepared(stripBlock, scrolled, slowly(steps));
  scrollDown(AROUND);
  const seen: [number, number][] = [];
  for (let i = 0; i < 7; i++) {
    frame();
    seen.push([steps.length, stripBlock.value]);
  }
  expect(seen).toEqual([...[0, 1, 2, 3, 3].map((count) => [count, 0]), [3, AROUND], [3, AROUND]]);
  end();
});

it("prepares only where one has scrolled to by then", () => {
  const steps: number[] = [];
  const end = prepared(stripBlock, scrolled, slowly(steps));
  scrollDown(1);
  for (let i = 0; i < 3; i++) frame();
  scrollDown(2);
  for (let i = 0; i < 9; i++) frame();
  expect([steps, stripBlock.value]).toEqual([[1, 1, 2, 2, 2], 2]);
  scrollDown(1);
  scrollDown(2);
  for (let i = 0; i < 9; i++) frame();
  expect(steps.length).toBe(5);
  end();
});

it("is at once where nothing is drawn: further than what is drawn around a block", () => {
  const steps: number[] = [];
  const end = prepared(stripBlock, scrolled, slowly(steps));
  scrollDown(AROUND + 1);
  expect(stripBlock.value).toBe(AROUND + 1);
  scrollDown(2);
  expect(stripBlock.value).toBe(AROUND + 1);
  scrollDown(0);
  expect(stripBlock.value).toBe(0);
  for (let i = 0; i < 5; i++) frame();
  expect(steps).toEqual([]);
  end();
});

it("prepares nothing more once it has ended", () => {
  const steps: number[] = [];
  const end = prepared(stripBlock, scrolled, slowly(steps));
  scrollDown(2);
  end();
  for (let i = 0; i < 9; i++) frame();
  expect([steps, stripBlock.value]).toEqual([[], 0]);
});
