import { describe, expect, it } from "vitest";
import type { Container, Section } from "../server/container";
import type { LayerHeader } from "../server/types";
import { deltaAt, readCells } from "./cells";
import { FROZEN, MOVING, PRUNED, VIOLATED } from "./states";

/** An answer of three channels and 50 records. */
function answer(more: Record<string, Section>): Container<LayerHeader> {
  const steps = Float64Array.from({ length: 50 }, (_, t) => t);
  const sections = { steps, past_steps: steps, wall_times: steps, learning_rates: new Float32Array(50), ...more };
  return { header: { channels: 3 } as LayerHeader, sections: new Map(Object.entries(sections)) };
}

const told = {
  state: Uint8Array.of(MOVING, FROZEN, FROZEN | VIOLATED, PRUNED),
  state_lengths: Uint8Array.of(49, 90, 1, 10),
  delta: Uint8Array.from({ length: 150 }, (_, at) => at % 4),
  delta_values: Float64Array.of(0, 0.5, Number.POSITIVE_INFINITY, Number.NaN),
};

describe("an answer", () => {
  it("is read cell by cell, also where a stretch goes on in the next channel", () => {
    const { state } = readCells(answer(told));
    const expected = [
      ...Array(49).fill(MOVING),
      ...Array(90).fill(FROZEN),
      FROZEN | VIOLATED,
      ...Array(10).fill(PRUNED),
    ];
    expect([...state]).toEqual(expected);
  });

  it("tells each delta by its place", () => {
    const cells = readCells(answer(told));
    expect([0, 1, 2, 3, 149].map((at) => deltaAt(cells, at))).toEqual([...told.delta_values, 0.5]);
    const wide = readCells(answer({ ...told, delta: Uint16Array.from(told.delta) }));
    expect([0, 1, 2, 3, 149].map((at) => deltaAt(wide, at))).toEqual([...told.delta_values, 0.5]);
  });

  it("is refused where places are of another type", () => {
    expect(() => readCells(answer({ ...told, delta: new Int16Array(150) }))).toThrow(
      "section 'delta' as u1 or u2, got Int16Array",
    );
  });
});
