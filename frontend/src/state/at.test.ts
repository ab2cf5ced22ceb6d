import { beforeEach, expect, it, vi } from "vitest";
import type { RecordBlock } from "../data/record";
import { STATES } from "../data/states";
import { awaited, blocksAt, figuresAt, recordStep, wallTimeAt, withoutQuietAt } from "./at";
import type { Run } from "./runs";

const server = vi.hoisted(() => ({
  asked: [] as [string, number, number | undefined][],
  told: new Map<string, { value: unknown; error: string | null }>(),
}));
vi.mock("./answers", () => ({
  BLOCK: 4,
  blockOf(run: { name: string }, number: number, th?: number) {
    server.asked.push([run.name, number, th]);
    return server.told.get(`${run.name} ${number} ${th}`) ?? { value: null, error: null };
  },
}));

/** Ten records, ten steps apart, from 100 on. */
const steps = Float64Array.from({ length: 10 }, (_, t) => 100 + 10 * t);
const run = { name: "r", recordSteps: steps } as Run;

/** The records of a block: so many channels of a layer of nine move as the record's number tells, all others are quiet. */
function blockOf(number: number): RecordBlock {
  const own = steps.subarray(4 * number, 4 * number + 4);
  const moving = Array.from(own, (step) => (step - 100) / 10);
  return {
    run: "r",
    threshold: 1e-4,
    steps: own,
    wallTimes: own.map((step) => 1000 + step),
    learningRates: new Float32Array(own.length),
    rows: new Map([["a", 0]]),
    channels: [9],
    prunable: [0],
    age: new Uint32Array(own.length),
    counts: Uint32Array.from(moving.flatMap((count) => [0, count, 0, 9 - count, 0, 0, 0, 0])),
    violated: new Uint32Array(own.length),
    meanDelta: new Float32Array(own.length),
    pruned: new Float64Array(own.length),
  };
}

const tell = (number: number, th?: number) => {
  const block = blockOf(number);
  server.told.set(`r ${number} ${th}`, { value: block, error: null });
  return block;
};

beforeEach(() => {
  server.asked.length = 0;
  server.told.clear();
});

it("reads each step from the block that holds its record, the last one for good", () => {
  const blocks = [0, 1, 2].map((number) => tell(number));
  expect(blocks[2].counts).toHaveLength(2 * STATES);
  for (const [step, record] of [
    [100, 0],
    [139.9, 3],
    [140, 4],
    [179, 7],
    [180, 8],
    [1e6, 9],
  ]) {
    server.asked.length = 0;
    expect(figuresAt(run, ["a"], step)).toMatchObject({ step: 100 + 10 * record, channels: 9 });
    expect(figuresAt(run, ["a"], step)?.counts).toEqual([0, record, 0, 9 - record, 0, 0, 0, 0]);
    expect(new Set(server.asked.map(([, number]) => number))).toEqual(new Set([Math.floor(record / 4)]));
    expect(wallTimeAt(run, step)).toBe(1100 + 10 * record);
    expect(recordStep(run, step)).toBe(100 + 10 * record);
  }
  expect(figuresAt(run, ["none"], 120)).toBeNull();
  expect(blocksAt([run, run], 141)).toEqual([blocks[1], blocks[1]]);
});

it("asks for nothing before the first record", () => {
  expect(figuresAt(run, ["a"], 99.9)).toBeNull();
  expect(wallTimeAt(run, 99.9)).toBeNaN();
  expect(awaited(run, 99.9)).toBe(false);
  expect(blocksAt([run], 99.9)).toEqual([null]);
  expect(recordStep(run, 42.7)).toBe(42);
  expect(server.asked).toEqual([]);
});

it("has nothing while a block loads, and says so until it comes or fails", () => {
  expect([figuresAt(run, ["a"], 150), awaited(run, 150)]).toEqual([null, true]);
  expect(wallTimeAt(run, 150)).toBeNaN();
  server.told.set("r 1 undefined", { value: null, error: "gone" });
  expect([figuresAt(run, ["a"], 150), awaited(run, 150)]).toEqual([null, false]);
  tell(1);
  expect([figuresAt(run, ["a"], 150)?.step, awaited(run, 150)]).toEqual([150, false]);
});

it("asks apart for figures without a threshold", () => {
  tell(0);
  expect(withoutQuietAt(run, ["a"], 120)).toBeNull();
  tell(0, 0);
  expect(withoutQuietAt(run, ["a"], 120)?.counts[1]).toBe(2);
  expect(server.asked.every(([, number, th]) => number === 0 && th === 0)).toBe(true);
});
