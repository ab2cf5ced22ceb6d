import { expect, it, vi } from "vitest";
import { inTurn, noTurn } from "./turns";

const frames: (() => void)[] = [];
vi.stubGlobal("requestAnimationFrame", (one: () => void) => frames.push(one));
vi.stubGlobal("document", { documentElement: { dataset: {} } });
let now = 0;
vi.stubGlobal("performance", { now: () => now });
const frame = () => {
  for (const one of frames.splice(0)) one();
};

it("draws again in the frames after the one that asks, until each has had enough", () => {
  const drawn: string[] = [];
  const draw = (name: string) => () => {
    drawn.push(name);
    now += 2;
  };
  const next = () => {
    drawn.splice(0);
    frame();
    return drawn;
  };
  for (const name of ["a", "b", "c", "d", "e"]) inTurn(name, true, draw(name));
  // Where there is no picture yet, nothing waits.
  inTurn("new", false, draw("new"));
  expect(drawn).toEqual(["new"]);
  expect(next()).toEqual([]);
  expect(next()).toEqual(["a", "b"]);
  inTurn("c", true, draw("c again"));
  noTurn("d");
  expect(next()).toEqual(["e", "c again"]);
  expect(next()).toEqual([]);
  inTurn("a", true, draw("a again"));
  expect([...next(), ...next()]).toEqual(["a again"]);
});
