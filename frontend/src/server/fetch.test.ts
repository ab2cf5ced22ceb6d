import { beforeEach, expect, it, vi } from "vitest";
import { fetchFindings, fetchIndex, fetchRecords, UNCHANGED } from "./fetch";
import { SCHEMA } from "./types";

/** A container of a header alone. */
function container(run: string): Uint8Array {
  const error = run === damaged ? { code: "unreadable", message: "damaged" } : undefined;
  const text = new TextEncoder().encode(JSON.stringify({ schema: SCHEMA, run, error, sections: [] }));
  const bytes = new Uint8Array(Math.ceil((4 + text.length) / 8) * 8);
  new DataView(bytes.buffer).setUint32(0, text.length, true);
  bytes.set(text, 4);
  return bytes;
}

const requests: string[][] = [];
let broken = "";
let damaged = "";
let wrong: ((query: URLSearchParams) => Response | Promise<Response>) | null = null;

beforeEach(() => {
  requests.length = 0;
  broken = damaged = "";
  wrong = null;
});

vi.stubGlobal("fetch", async (url: string) => {
  const { searchParams } = new URL(url);
  const runs = searchParams.getAll("run");
  requests.push([searchParams.get("at")!, ...runs]);
  if (wrong) return wrong(searchParams);
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

it("says why a run has none that the server could not read", async () => {
  damaged = "b";
  const all = await Promise.allSettled([runOf("a", 5), runOf("b", 5)]);
  expect(all).toMatchObject([{ value: "a" }, { reason: { message: "damaged" } }]);
  expect(requests).toEqual([["5", "a", "b"]]);
});

it("asks once where the route is at fault, not the runs", async () => {
  wrong = () => new Response("{}", { status: 500 });
  const ask = (at: number) => Promise.allSettled(["a", "b", "c"].map((run) => runOf(run, at)));
  await ask(5);
  expect(requests).toHaveLength(1 + 3);
  expect((await ask(9)).map(({ status }) => status)).toEqual(Array(3).fill("rejected"));
  expect(requests).toHaveLength(1 + 3 + 1);
});

const UNREADABLE = "Could not read the answer of TensorBoard's server";
const html = { headers: { "Content-Type": "text/html; charset=utf-8" } };

it.each([
  ["a page of a proxy", () => new Response("<!DOCTYPE html>", html), `${UNREADABLE}: it is a web page`],
  ["what isn't JSON", () => new Response("<!DOCTYPE html>"), `${UNREADABLE}: it is cut off or damaged`],
  ["an answer that is cut", () => new Response('{"schema": 2, "findi'), `${UNREADABLE}: it is cut off or damaged`],
  ["nothing", () => new Response(""), `${UNREADABLE}: it is cut off or damaged`],
  ["null", () => new Response("null"), `${UNREADABLE}: expected schema `],
  [
    "a proxy's error",
    () => new Response("Bad gateway", { status: 502 }),
    "Could not load 'findings': expected status 200, got 502",
  ],
  ["nothing new for who has nothing", () => new Response(null, { status: 304 }), "expected status 200, got 304"],
  [
    "a connection that ends",
    () => Promise.reject(new TypeError("Failed to fetch")),
    "Could not reach TensorBoard's server",
  ],
])("says of %s that the answer is lost", async (_, answer, text) => {
  wrong = answer;
  await expect(fetchFindings({})).rejects.toThrow(text);
});

it("knows parts of runs that are cut off, and a status for what it has", async () => {
  vi.setSystemTime(Date.now() + 10_000);
  wrong = (query) => new Response(container(query.getAll("run")[0]) as BlobPart);
  const both = await Promise.allSettled([runOf("a", 30), runOf("b", 30)]);
  expect(both).toMatchObject([{ value: "a" }, { value: "b" }]); // each by itself
  wrong = () => new Response(null, { status: 304 });
  vi.useRealTimers();
  await expect(fetchIndex({}, { signal: new AbortController().signal, tag: "x" })).rejects.toBe(UNCHANGED);
});
