import { expect, it } from "vitest";
import { beginningAndEnd, isolated, shortNames } from "./names";

const shorts = (...names: string[]) => [...shortNames(names).values()];

it("leaves out the words that all names share", () => {
  expect(shorts("mobilenet_lr1e-02_wd0_seed0", "mobilenet_lr1e-03_wd0_seed1")).toEqual([
    "lr1e-02…seed0",
    "lr1e-03…seed1",
  ]);
  expect(shorts("sweep/a/kernel", "sweep/b/kernel")).toEqual(["a", "b"]);
});

it("keeps names that have nothing in common, and one name alone", () => {
  expect(shorts("dense", "freeze_steps")).toEqual(["dense", "freeze_steps"]);
  expect(shorts("only/one")).toEqual(["only/one"]);
});

it("never shortens two names to one text, and none to nothing", () => {
  const names = ["a", "a_a", "a_b", "a_a_a", "b-a", "a/a/x", "a/b/x"];
  for (let i = 0; i < names.length; i++) {
    for (let j = i + 1; j < names.length; j++) {
      const [first, second] = shorts(names[i], names[j]);
      expect(first).not.toBe("");
      expect(first, `${names[i]} ${names[j]}`).not.toBe(second);
    }
  }
});

it.each([
  ["lr1e-1…seed0", ["lr1e-1…", "seed0"]],
  ["lr=0.0001/seed0", ["lr=0.0001/", "seed0"]],
  ["sgd.wd1e-4", ["sgd.", "wd1e-4"]],
  ["freeze_steps", ["freeze_", "steps"]],
  ["dense", ["dense"]],
  ["תוצאה_ראשונה", ["תוצאה_ראשונה"]],
  ["a\u202e_later", ["a\u202e_later"]],
])("may cut the beginning of %o, not its end", (name, parts) => {
  expect(beginningAndEnd(name)).toEqual(parts);
});

it("isolates names from right to left, which would order the letters around them anew", () => {
  expect(["run_1", "עברית_1"].map(isolated)).toEqual(["run_1", "\u2068עברית_1\u2069"]);
});
