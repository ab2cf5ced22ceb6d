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

it("leaves pictures to later frames once a frame has had enough", () => {
  const drawn: string[] = [];
  const draw = (name: string) => () => {
    drawn.push(name);
    now += 2;
  };
  for (const name of ["a", "b", "c", "d", "e"]) inTurn(name, true, draw(name));
  expect(drawn).toEqual(["a", "b"]);
  // Where there is no picture yet, nothing waits.
  inTurn("new", false, draw("new"));
  inTurn("c", true, draw("c again"));
  noTurn("d");
  expect(drawn).toEqual(["a", "b", "new"]);
  for (let i = 0; i < 2; i++) frame();
  expect(drawn).toEqual(["a", "b", "new", "e", "c again"]);
  for (let i = 0; i < 4; i++) frame();
  inTurn("a", true, draw("a again"));
  expect(drawn.at(-1)).toBe("a again");
});
