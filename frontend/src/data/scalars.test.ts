import { expect, it } from "vitest";
import { commonName } from "./scalars";

const run = (...names: string[]) => ({ names, name: names[0] ?? null });

it.each([
  ["what all read", [run("loss", "other"), run("loss")], "loss"],
  ["what all have", [run("batch", "epoch"), run("epoch", "rate")], "epoch"],
  ["what all have that have any", [run(), run("batch", "epoch"), run("epoch")], "epoch"],
  ["the first where they have nothing in common", [run("batch"), run("epoch")], "batch"],
  ["nothing of none", [run()], null],
  ["nothing without runs", [], null],
])("lanes show %s", (_, all, name) => expect(commonName(all)).toBe(name));
