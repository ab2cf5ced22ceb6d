import { describe, expect, it } from "vitest";
import type { Container, Section } from "../server/container";
import type { LayerHeader } from "../server/types";
import { countsOf, deltaAt, figuresAt, readCells } from "./cells";
import { FROZEN, MOVING, NO_DATA, PRUNED, STATE_BITS, STATES, VIOLATED } from "./states";

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
      "section 'delta' as Uint8Array or Uint16Array, got Int16Array",
    );
  });
});

describe("figures of a record", () => {
  // Stretches of one cell to five; deltas of which one is above 1 and one is no number.
  const bytes = Array.from({ length: 150 }, (_, at) => {
    const state = Math.floor(at / (1 + (at % 5))) % STATES;
    return state | (at % 11 === 0 ? VIOLATED : 0);
  });
  const values = [0, 0.5, 3, Number.NaN];
  const cells = readCells(
    answer({
      state: Uint8Array.from(bytes),
      state_lengths: new Uint8Array(150).fill(1),
      delta: Uint8Array.from(bytes, (_, at) => at % 4),
      delta_values: Float64Array.from(values),
    }),
  );

  it("count each channel there, and no other record", () => {
    for (let t = 0; t < 50; t++) {
      const at = [t, 50 + t, 100 + t];
      const counts = Array.from({ length: STATES }, (_, s) => at.filter((i) => (bytes[i] & STATE_BITS) === s).length);
      const moving = at.filter((i) => (bytes[i] & STATE_BITS) === MOVING);
      // Of the mean a delta counts for at most 1, what is no number for 0.
      const sum = moving.reduce((all, i) => all + [0, 0.5, 1, 0][i % 4], 0);
      expect(figuresAt(cells, t + 0.5)).toEqual({
        step: t,
        oldest: t,
        counts,
        total: 3 - counts[NO_DATA],
        channels: 3,
        violated: at.filter((i) => i % 11 === 0).length,
        meanDelta: moving.length > 0 ? expect.closeTo(sum / moving.length, 12) : Number.NaN,
        pruned: Number.NaN,
        prunable: 0,
      });
    }
  });

  it("are those of the last record from there on, and there are none before the first", () => {
    expect(figuresAt(cells, 1e6)?.step).toBe(49);
    expect(figuresAt(cells, -1)).toBeNull();
    expect(countsOf(cells)).toBe(countsOf(cells));
  });
});
