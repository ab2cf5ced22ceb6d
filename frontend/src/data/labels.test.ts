import { expect, it } from "vitest";
import { labelsOf } from "./labels";

const width = (text: string) => text.length;
const at = (names: string[], room: number) => [...labelsOf(names, width)(room).values()];

const sweep = ["1e-1", "3e-2", "1e-2", "3e-3"].flatMap((lr) =>
  ["magnitude_global", "random_uniform"].flatMap((prune) =>
    [0, 1, 2, 3].map((seed) => `2026-11-27_digits-resmlp_w96_opt=sgdm_lr=${lr}_wd=5e-4_prune=${prune}_seed=${seed}`),
  ),
);
const lora = [0, 1, 11].flatMap((block) =>
  ["query", "value"].flatMap((name) =>
    ["base_layer", "lora_A/default", "lora_B/default"].map(
      (part) => `base_model/model/bert/encoder/layer/${block}/attention/self/${name}/${part}`,
    ),
  ),
);

it.each([
  ["a sweep", sweep],
  ["adapters", lora],
  ["words", ["a", "a_a", "a_b", "a_a_a", "b-a", "a/a/x", "a/b/x"]],
  ["numbers", Array.from({ length: 120 }, (_, i) => `run_with_a_long_name_${i}_of_many`)],
])("never cuts two names of %s to one text", (_, names) => {
  for (let room = 4; room < 120; room++) {
    const labels = at(names, room);
    expect(new Set(labels).size, `${room}`).toBe(names.length);
    if (room >= 9) expect(Math.max(...labels.map(width)), `${room}`).toBeLessThanOrEqual(room);
  }
});

it("keeps the words that differ, then their values, then their first letters", () => {
  expect(at(sweep, 200)[0]).toBe(sweep[0]);
  expect(at(sweep, 34)[0]).toBe("lr=1e-1…prune=magnitude…seed=0");
  expect(at(sweep, 20)[0]).toBe("1e-1 magnitude 0");
  expect(at(sweep, 8)[0]).toBe("1e-1 m 0");
});

it("keeps of paths the last words, and those that tell them apart", () => {
  const modules = ["block/attention/self/query", "attention/output/dense", "intermediate/dense", "output/dense"];
  expect(at(modules, 22)).toEqual(["query", "attention/output", "intermediate", "output"]);
});

it("takes initials where there is room for little else", () => {
  const parts = ["query", "value"].flatMap((name) =>
    ["base_layer", "lora_A/default", "lora_B/default"].map((part) => `self/${name}/${part}`),
  );
  expect(at([...parts, "key"], 6)).toEqual(["q/b", "q/A", "q/B", "v/b", "v/A", "v/B", "k"]);
});

it("cuts names of one word where they agree", () => {
  const names = ["bn", "decay303", "decay451", "gradual"];
  expect(at(names, 8)).toEqual(names);
  expect(at(names, 7)).toEqual(["bn", "dec…303", "dec…451", "gradual"]);
  expect(at(names, 5)).toEqual(["bn", "d…303", "d…451", "gr…al"]);
  expect(at(names, 4)).toEqual(["bn", "…303", "…451", "gr…l"]);
  expect(at(["lr3e-4", "lr1e-3"], 5)).toEqual(["3e-4", "1e-3"]);
});

it("cuts in the middle names of other forms", () => {
  expect(at(["freeze_steps", "leak_weight_decay"], 10)).toEqual(["free…steps", "leak…decay"]);
  expect(at(["only/one"], 6)).toEqual(["one"]);
});
