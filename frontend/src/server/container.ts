/** The binary container: u32 header length, JSON header, then 8-byte-aligned little-endian sections. */

import { unreadable } from "./errors";

export type Section = Uint8Array | Uint16Array | Int16Array | Uint32Array | Float32Array | Float64Array;

interface SectionInfo {
  name: string;
  dtype: string;
  shape: number[];
  offset: number;
}

export interface Container<H> {
  header: H;
  sections: Map<string, Section>;
}

const KINDS = {
  u1: Uint8Array,
  u2: Uint16Array,
  i2: Int16Array,
  u4: Uint32Array,
  f4: Float32Array,
  f8: Float64Array,
} as const;

const align = (offset: number): number => Math.ceil(offset / 8) * 8;

function fail(expected: string, got: string): never {
  throw unreadable(`expected ${expected}, got ${got}`);
}

/** The container that begins at a place of a buffer, and where it ends. */
function parse<H>(buffer: ArrayBuffer, from: number): [Container<H>, number] {
  const size = buffer.byteLength - from;
  if (size < 4) fail("a header length", `${size} bytes`);
  const length = new DataView(buffer).getUint32(from, true);
  if (4 + length > size) fail(`a header of ${length} bytes`, `${size - 4}`);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, from + 4, length))) as H & {
    sections?: SectionInfo[];
  };
  const start = from + align(4 + length);
  const sections = new Map<string, Section>();
  let end = start;
  for (const info of header.sections ?? []) {
    const Kind = KINDS[info.dtype as keyof typeof KINDS];
    if (!Kind) fail("a known section type", info.dtype);
    const count = info.shape.reduce((product, size) => product * size, 1);
    const begin = start + info.offset;
    if (count > 0 && begin + count * Kind.BYTES_PER_ELEMENT > buffer.byteLength) {
      fail(`${count} numbers in section '${info.name}'`, `${buffer.byteLength - begin} bytes`);
    }
    sections.set(info.name, count > 0 ? new Kind(buffer, begin, count) : new Kind(0));
    end = Math.max(end, align(begin + count * Kind.BYTES_PER_ELEMENT));
  }
  return [{ header, sections }, end];
}

/**
 * Parses containers that follow one another. Sections are views into `buffer`, without a copy.
 *
 * @throws Error where a length, a type or an offset doesn't fit the buffer.
 */
export function parseContainers<H>(buffer: ArrayBuffer): Container<H>[] {
  const containers: Container<H>[] = [];
  for (let from = 0; from === 0 || from < buffer.byteLength; ) {
    const [container, end] = parse<H>(buffer, from);
    containers.push(container);
    from = end;
  }
  return containers;
}

/** Places in a list, as small as the list allows. */
export type Places = Uint8Array | Uint16Array;

/** A part of a section of numbers of any type, as one array: drawing code then gets only one type of array. */
export function numbers<S extends Uint32Array | Float64Array>(
  container: Container<unknown>,
  name: string,
  Kind: new (values: Section) => S,
  from = 0,
  end?: number,
): S {
  const part = whole(container, name).subarray(from, end);
  return part instanceof Kind ? part : new Kind(part);
}

/** A section of numbers of whatever type: a view into the answer. */
export function whole(container: Container<unknown>, name: string): Section {
  return container.sections.get(name) ?? fail(`section '${name}'`, "none");
}

type Kind<S> = new (length: number) => S;

/** The section by name, of a type that the reader expects. */
export function section<S extends Section>(container: Container<unknown>, name: string, ...kinds: Kind<S>[]): S {
  const values = container.sections.get(name);
  const expected = () => `section '${name}' as ${kinds.map((kind) => kind.name).join(" or ")}`;
  if (!kinds.some((kind) => values instanceof kind)) fail(expected(), values?.constructor.name ?? "none");
  return values as S;
}
