import { beforeEach, expect, it, vi } from "vitest";
import type { Cells } from "../data/cells";
import { listed } from "../data/fixtures";
import { FROZEN, MOVING, QUIET } from "../data/states";
import { cellsOf } from "./answers";
import { allRows, drawnRows, ordered, orderRun, zoomedRows } from "./rows";
import { layerIn, type Run, runs } from "./runs";
import { order, rowsOf, rowZoom } from "./store";

vi.mock("./answers", () => ({ cellsOf: vi.fn() }));
vi.mock("./runs", () => ({ layerIn: vi.fn(), runs: { value: [] } }));
vi.mock("./store", () => ({ order: { value: "moved" }, rowsOf: { value: null }, rowZoom: { value: null } }));

/** One record of a layer. */
function cells(...state: number[]): Cells {
  const steps = Float64Array.of(0);
  return {
    header: {} as Cells["header"],
    channels: state.length,
    records: 1,
    steps,
    pastSteps: steps,
    learningRates: new Float32Array(1),
    wallTimes: steps,
    end: 1,
    state: Uint8Array.from(state),
    ...listed(state.map(() => 0)),
  };
}

const set = (signal: unknown, value: unknown) => Object.assign(signal as object, { value });
const [own, other, small] = ["own", "other", "small"].map((name) => ({ name }) as Run);
const layers: Record<string, number> = { own: 3, other: 3, small: 2 };
const mine = cells(FROZEN, MOVING, QUIET);
const theirs = cells(MOVING, QUIET, FROZEN);

beforeEach(() => {
  set(order, "moved");
  set(rowsOf, null);
  set(rowZoom, null);
  set(runs, [own, other, small]);
  vi.mocked(layerIn).mockImplementation((run, id) =>
    id === "a" ? ({ channels: layers[run.name] } as ReturnType<typeof layerIn>) : undefined,
  );
  vi.mocked(cellsOf).mockImplementation((name) => ({
    value: name === "other" ? theirs : cells(MOVING, MOVING),
    error: null,
    loading: false,
    at: 0,
  }));
});

it("orders channels, and keeps each order", () => {
  expect([...ordered(mine, "moved")]).toEqual([1, 2, 0]);
  expect([...ordered(mine, "index")]).toEqual([0, 1, 2]);
  expect(ordered(mine, "moved")).toBe(ordered(mine, "moved"));
});

it("takes the order of another run, where both have the same channels", () => {
  expect([orderRun(own, "a"), [...allRows(own, "a", mine)]]).toEqual([null, [1, 2, 0]]);
  set(rowsOf, "other");
  expect([orderRun(own, "a"), [...allRows(own, "a", mine)]]).toEqual([other, [0, 1, 2]]);
  set(order, "index");
  expect([...allRows(other, "a", theirs)]).toEqual([0, 1, 2]);
});

it.each([
  ["it is the run itself", "own", "a"],
  ["the other has other channels", "small", "a"],
  ["there is no such run", "gone", "a"],
  ["neither has the layer", "other", "b"],
])("keeps its own order where %s", (_, name, layer) => {
  set(rowsOf, name);
  expect(orderRun(own, layer)).toBeNull();
  expect([...allRows(own, layer, mine)]).toEqual([1, 2, 0]);
});

it("keeps its own order while that of the other isn't there, or is of other channels", () => {
  set(rowsOf, "other");
  vi.mocked(cellsOf).mockReturnValue({ value: null, error: null, loading: true, at: 0 });
  expect([...allRows(own, "a", mine)]).toEqual([1, 2, 0]);
  vi.mocked(cellsOf).mockReturnValue({ value: cells(MOVING, FROZEN), error: null, loading: false, at: 0 });
  expect([...allRows(own, "a", mine)]).toEqual([1, 2, 0]);
});

it("draws the zoomed rows, as one list until they change, and all where the zoom is outside", () => {
  const all = Uint32Array.of(4, 2, 0, 1, 3);
  expect(drawnRows(all)).toBe(all);
  set(rowZoom, [1, 3]);
  const rows = drawnRows(all);
  expect([...rows]).toEqual([2, 0]);
  expect(drawnRows(all)).toBe(rows);
  expect([...drawnRows(Uint32Array.of(0, 1, 2))]).toEqual([1, 2]);
  set(rowZoom, [3, 99]);
  expect([...drawnRows(all)]).toEqual([1, 3]);
  expect([zoomedRows(5), zoomedRows(3)]).toEqual([[3, 5], null]);
  for (const outside of [
    [5, 9],
    [0, 5],
  ]) {
    set(rowZoom, outside);
    expect(drawnRows(all)).toBe(all);
  }
});
