import { describe, expect, it } from "vitest";
import { numbers, parseContainers, section } from "./container";

/** A container as the contract has it. */
function encode(
  sections: { name: string; dtype: string; shape: number[]; offset: number }[],
  body: Uint8Array,
): ArrayBuffer {
  const json = new TextEncoder().encode(JSON.stringify({ schema: 1, sections }));
  const start = Math.ceil((4 + json.length) / 8) * 8;
  const bytes = new Uint8Array(start + body.length);
  new DataView(bytes.buffer).setUint32(0, json.length, true);
  bytes.set(json, 4);
  bytes.set(body, start);
  return bytes.buffer;
}

const body = new Uint8Array(Float64Array.of(1, 2.5).buffer);
const good = [{ name: "steps", dtype: "f8", shape: [2], offset: 0 }];

const parseContainer = <H>(buffer: ArrayBuffer) => parseContainers<H>(buffer)[0];

describe("a container", () => {
  it("reads sections without a copy", () => {
    const container = parseContainer<{ schema: number }>(encode(good, body));
    expect(container.header.schema).toBe(1);
    expect(Array.from(section(container, "steps", Float64Array))).toEqual([1, 2.5]);
  });

  it("is read after another one", () => {
    const [first, second] = [encode(good, body), encode([{ ...good[0], name: "ends" }], body)];
    const both = new Uint8Array(first.byteLength + second.byteLength);
    both.set(new Uint8Array(first));
    both.set(new Uint8Array(second), first.byteLength);
    const names = parseContainers(both.buffer).map(({ sections }) => [...sections.keys()]);
    expect(names).toEqual([["steps"], ["ends"]]);
    expect(() => parseContainers(both.buffer.slice(0, -8))).toThrow("expected 2 numbers in section 'ends'");
  });

  it("reads an empty section", () => {
    const container = parseContainer(encode([{ name: "state", dtype: "u1", shape: [0, 9], offset: 16 }], body));
    expect(section(container, "state", Uint8Array)).toHaveLength(0);
  });

  it("gives counts of any type as one type", () => {
    const words = new Uint8Array(Uint16Array.of(3, 700).buffer);
    const container = parseContainer(encode([{ name: "counts", dtype: "u2", shape: [2], offset: 0 }], words));
    const counts = numbers(container, "counts", Uint32Array);
    expect(counts).toBeInstanceOf(Uint32Array);
    expect([...counts]).toEqual([3, 700]);
    expect(() => numbers(container, "other", Uint32Array)).toThrow("expected section 'other', got none");
  });

  it.each([
    ["a short buffer", new ArrayBuffer(2), "expected a header length, got 2 bytes"],
    ["a cut header", encode(good, body).slice(0, 20), "expected a header of"],
    ["a cut section", encode(good, body.subarray(0, 8)), "expected 2 numbers in section 'steps', got 8 bytes"],
    ["an unknown type", encode([{ ...good[0], dtype: "c16" }], body), "expected a known section type, got c16"],
  ])("refuses %s", (_, buffer, text) => {
    expect(() => parseContainer(buffer)).toThrow(text);
  });

  it("refuses a section that is missing or of another type", () => {
    const container = parseContainer(encode(good, body));
    expect(() => section(container, "state", Uint8Array)).toThrow("expected section 'state' as Uint8Array, got none");
    expect(() => section(container, "steps", Uint8Array)).toThrow("got Float64Array");
  });
});
