import { beforeEach, expect, it, vi } from "vitest";
import { listenToInputs, never, SOON, schedule } from "./frames";

const frames: (() => void)[] = [];
vi.stubGlobal("requestAnimationFrame", (one: () => void) => frames.push(one));
vi.stubGlobal("document", { documentElement: { dataset: {} } });
let now = 0;
vi.stubGlobal("performance", { now: () => now });
const page = new EventTarget();
vi.stubGlobal("window", page);
listenToInputs();

const done: string[] = [];
const work = (name: string) => () => {
  done.push(name);
  now += 2;
};
/** What is done in the next frame, 16 ms later; with an input in it or without. */
function frame(input?: string): string[] {
  done.splice(0);
  now += 16;
  if (input) page.dispatchEvent(new Event(input));
  for (const one of frames.splice(0)) one();
  return [...done];
}

beforeEach(() => {
  for (let i = 0; i < 20; i++) frame();
});

it("works in the frames after the one that asks, until each has had enough", () => {
  for (const name of ["a", "b", "c", "d", "e"]) schedule("draw", name, work(name));
  expect(frame()).toEqual([]);
  expect(frame()).toEqual(["a", "b"]);
  schedule("draw", "c", work("c again"));
  never("d");
  expect(frame()).toEqual(["c again", "e"]);
  expect(frame()).toEqual([]);
  schedule("draw", "a", work("a again"));
  expect([...frame(), ...frame()]).toEqual(["a again"]);
});

it("gives a frame of its own to what renders afterwards", () => {
  schedule("draw", "a", work("a"));
  schedule("render", "b", work("b"));
  schedule("render", "c", work("c"));
  schedule("draw", "d", work("d"));
  expect([frame(), frame(), frame(), frame(), frame()]).toEqual([[], ["a"], ["b"], ["c"], ["d"]]);
});

it("lets inputs go first, for a while", () => {
  schedule("draw", "a", work("a"));
  schedule("render", "b", work("b"));
  expect(frame("pointermove")).toEqual([]);
  expect(frame("keydown")).toEqual([]);
  expect(frame()).toEqual(["a"]);
  for (let i = 0; i < 9; i++) expect(frame("pointermove")).toEqual([]);
  // A pointer that never rests leaves nobody behind.
  expect(frame("pointermove")).toEqual(["b"]);
});

it("does first what is due first", () => {
  schedule("render", "a", work("a"));
  schedule("render", "b", work("b"), { patience: SOON });
  for (let i = 0; i < 3; i++) expect(frame("pointermove")).toEqual([]);
  expect([frame("pointermove"), frame("pointermove"), frame()]).toEqual([["b"], [], ["a"]]);
});

it("goes on with what has more, and forgets the rest of what is asked anew", () => {
  const parts = (name: string, count: number) => {
    let left = count;
    return () => {
      work(`${name}${left--}`)();
      return left > 0;
    };
  };
  schedule("draw", "a", parts("a", 5));
  schedule("draw", "b", work("b"));
  expect([...frame(), ...frame()]).toEqual(["a5", "a4"]);
  expect(frame()).toEqual(["a3", "a2"]);
  schedule("draw", "a", parts("anew", 1));
  expect(frame()).toEqual(["anew1", "b"]);
  expect(frame()).toEqual([]);
});

it("does what answers the user in the frame it is for, before all else and whatever has come in", () => {
  schedule("draw", "a", work("a"));
  schedule("input", "answer", work("answer"), { frames: 3 });
  let waiting = 2;
  schedule("input", "waits", () => {
    done.push("waits");
    return --waiting > 0;
  });
  expect([frame("wheel"), frame("wheel"), frame("wheel")]).toEqual([["waits"], ["waits"], ["answer"]]);
  expect(frame()).toEqual(["a"]);
  // What is asked for again keeps its frame.
  schedule("input", "answer", work("old"), { frames: 2 });
  frame();
  schedule("input", "answer", work("new"), { frames: 2 });
  expect([frame(), frame()]).toEqual([["new"], []]);
});
