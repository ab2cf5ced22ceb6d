import { beforeEach, expect, it, vi } from "vitest";
import { fetchRecords } from "./fetch";

/** A container of a header alone. */
function container(run: string): Uint8Array {
  const text = new TextEncoder().encode(JSON.stringify({ schema: 3, run, sections: [] }));
  const bytes = new Uint8Array(Math.ceil((4 + text.length) / 8) * 8);
  new DataView(bytes.buffer).setUint32(0, text.length, true);
  bytes.set(text, 4);
  return bytes;
}

const requests: string[][] = [];
let broken = "";

beforeEach(() => {
  requests.length = 0;
  broken = "";
});

vi.stubGlobal("fetch", async (url: string) => {
  const { searchParams } = new URL(url);
  const runs = searchParams.getAll("run");
  requests.push([searchParams.get("at")!, ...runs]);
  if (runs.includes(broken)) return new Response(JSON.stringify({ error: { message: "lost" } }), { status: 404 });
  return new Response(new Blob(runs.map((run) => container(run) as BlobPart)));
});

const runOf = async (run: string, at: number) => (await fetchRecords(run, { at })).header.run;

it("asks once for the records of runs at a step", async () => {
  const all = Promise.all([runOf("a", 5), runOf("b", 5), runOf("c", 6)]);
  expect(await all).toEqual(["a", "b", "c"]);
  expect(requests).toEqual([
    ["5", "a", "b"],
    ["6", "c"],
  ]);
  expect(await runOf("b", 5)).toBe("b");
  expect(requests.at(-1)).toEqual(["5", "b"]);
});

it("gives the other runs where one can't be read", async () => {
  broken = "b";
  const all = await Promise.allSettled([runOf("a", 5), runOf("b", 5)]);
  expect(all).toMatchObject([{ value: "a" }, { reason: { message: "lost" } }]);
  expect(requests).toEqual([
    ["5", "a", "b"],
    ["5", "a"],
    ["5", "b"],
  ]);
});
