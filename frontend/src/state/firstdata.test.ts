import { signal } from "@preact/signals";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { awaitFirstData, LOOK_AGAIN_MS } from "./firstdata";

const { index } = vi.hoisted(() => ({ index: { current: null as unknown as { value: unknown } } }));
vi.mock("./runs", () => ({ indexOf: () => index.current.value }));

const answer = (...records: number[]) => ({ value: { runs: records.map((count) => ({ records: count })) } });
const page = { hidden: false };

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("document", page);
  page.hidden = false;
});
afterEach(() => void vi.useRealTimers());

/** Shows an answer, then others, and counts how often each is asked for again in three times ten seconds. */
function reloads(...answers: unknown[]): number[] {
  index.current = signal<unknown>({ value: null });
  const reload = vi.fn();
  awaitFirstData(reload);
  return answers.map((shown) => {
    reload.mockClear();
    index.current.value = shown;
    vi.advanceTimersByTime(3 * LOOK_AGAIN_MS);
    return reload.mock.calls.length;
  });
}

it("asks again while there is no run or no record, and stops at the first", () => {
  expect(reloads({ value: null }, answer(), answer(0, 0), answer(0, 1))).toEqual([0, 3, 3, 0]);
});

it("rests while the page can't be seen", () => {
  page.hidden = true;
  expect(reloads(answer())).toEqual([0]);
  page.hidden = false;
  expect(reloads(answer())).toEqual([3]);
});
