import { expect, it } from "vitest";
import type { LayerEvent } from "../server/types";
import { flagText } from "./cells";

const rate = (from: number, to: number) => ({ kind: "learning_rate", from, to }) as const;
const mask = (kind: "kept" | "trainable", through: number, elements: number) => ({ kind, through, elements });
const held = (frozen: number, pruned: number) => ({ kind: "trainable", frozen, pruned, channels: 32 }) as const;

it.each([
  [rate(1e-3, 5e-4), "lr ÷2"],
  [rate(2.5e-4, 1.2e-4), "lr ÷2"],
  [rate(1e-5, 1e-3), "lr ×100"],
  [rate(1e-3, 7e-4), "lr → 0.0007"],
  [rate(0.1, 1 / 3), "lr → 0.333"],
  [rate(0.1, 0), "lr → 0"],
  [held(32, 0), "all frozen"],
  [held(0, 32), "all pruned"],
  [held(3, 4), "frozen: 3, pruned: 4"],
  [held(0, 0), "all released"],
  [mask("kept", 1024, 4096), "25.0% remaining"],
  [mask("trainable", 0, 4096), "0% trainable"],
  [mask("kept", 1, 1), "100% remaining"],
  [{ kind: "restart" } as const, "resumed"],
])("%o reads '%s'", (event, short) => {
  expect(flagText({ step: 1, text: "", ...event } as LayerEvent)).toBe(short);
});
