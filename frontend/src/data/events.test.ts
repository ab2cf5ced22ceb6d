import { expect, it } from "vitest";
import { flagText } from "./events";

it.each([
  ["learning_rate", "learning rate 0.001 → 0.0005", "lr ÷2"],
  ["learning_rate", "learning rate 0.00025 → 0.00012", "lr ÷2"],
  ["learning_rate", "learning rate 1e-05 → 0.001", "lr ×100"],
  ["learning_rate", "learning rate 0.001 → 0.0007", "lr → 0.0007"],
  ["learning_rate", "learning rate 0.1 → 0", "lr → 0"],
  ["learning_rate", "lr ÷10", "lr ÷10"],
  ["trainable", "32 of 32 channels frozen, 0 pruned", "32 frozen"],
  ["trainable", "3 of 32 channels frozen, 4 pruned", "3 frozen, 4 pruned"],
  ["trainable", "0 of 32 channels frozen, 0 pruned", "none held"],
  ["kept", "kept 1,024 of 4,096 weights", "kept 25.0%"],
  ["trainable", "trainable 0 of 4,096 weights", "trainable 0%"],
  ["kept", "kept 1 of 1 weight", "kept 100%"],
  ["restart", "a text that is much longer than the room", "a text that is much lon…"],
] as const)("%s '%s' reads '%s'", (kind, text, short) => {
  expect(flagText({ step: 1, kind, text })).toBe(short);
});
