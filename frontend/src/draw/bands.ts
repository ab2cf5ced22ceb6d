/** Rows of cells pooled into bands, one a row of pixels: what each picture of these rows takes, whatever its steps. */

import type { Cells } from "../model/cells";
import { MOVING, STATE_BITS, STATES, VIOLATED } from "../model/states";

/** Counts a cell of a band has room for. */
const CODES = STATE_BITS + 1;
/** Cells of bands that are made at a time: 64 MB. */
const MOST = 4 * 2 ** 20;

export interface Bands {
  /** The rows of pixels that they are made for. */
  from: number;
  end: number;
  /** Where the cells of each one's band begin. */
  at: Int32Array;
  /** Channels in each state, [(band * records + record) * 8 + state]. */
  counts: Uint8Array | Uint16Array;
  /** The states that occur, from the lowest row up: three bits each, code + 1. */
  order: Uint32Array;
  /** All bits that are set in any row. */
  marks: Uint8Array;
  /** The largest level of the moving rows, and of all. */
  moving: Uint8Array;
  levels: Uint8Array;
}

/** What is drawn of some bands. */
export interface Pool {
  state: number;
  level: number;
  violated: boolean;
}

/** The rows [first, end) under a row of pixels. */
export function rowsUnder(dy: number, height: number, channels: number): [number, number] {
  const first = Math.floor((dy * channels) / height);
  return [first, Math.max(first + 1, Math.floor(((dy + 1) * channels) / height))];
}

function front(order: number, code: number): number {
  let rest = 0;
  for (let left = order, shift = 3; left > 0; left >>= 3) {
    if ((left & 7) === code) continue;
    rest |= (left & 7) << shift;
    shift += 3;
  }
  return rest | code;
}

function build(cells: Cells, rows: Uint32Array, height: number, levels: Uint8Array, from: number): Bands {
  const { records, state, delta } = cells;
  const until = Math.min(height, from + Math.max(1, Math.floor(MOST / records)));
  const size = Math.min(until - from, rows.length) * records;
  const Kind = rows.length > 255 * height ? Uint16Array : Uint8Array;
  const counts = new Kind(size * CODES);
  const order = new Uint32Array(size);
  const [marks, moving, all] = [new Uint8Array(size), new Uint8Array(size), new Uint8Array(size)];
  const at = new Int32Array(until - from);
  for (let dy = from, band = -1, before = -1; dy < until; dy++) {
    const [first, end] = rowsUnder(dy, height, rows.length);
    if (first !== before) {
      band++;
      for (let r = first; r < end; r++) {
        for (let cell = rows[r] * records, to = band * records, last = to + records; to < last; to++, cell++) {
          const byte = state[cell];
          const code = byte & STATE_BITS;
          const level = levels[delta[cell] + 32768];
          counts[to * CODES + code]++;
          if ((order[to] & 7) !== code + 1) order[to] = front(order[to], code + 1);
          marks[to] |= byte;
          if (level > all[to]) all[to] = level;
          if (code === MOVING && level > moving[to]) moving[to] = level;
        }
      }
    }
    before = first;
    at[dy - from] = band * records;
  }
  return { from, end: until, at, counts, order, marks, moving, levels: all };
}

interface Kept {
  height: number;
  levels: Uint8Array;
  bands: Bands;
}

const kept = new WeakMap<Cells, WeakMap<Uint32Array, Kept>>();

/** The bands of some rows at a height from a row of pixels on, kept until a picture of the same rows needs others. */
export function bandsOf(cells: Cells, rows: Uint32Array, height: number, levels: Uint8Array, from: number): Bands {
  const own = kept.get(cells) ?? new WeakMap<Uint32Array, Kept>();
  kept.set(cells, own);
  let found = own.get(rows);
  if (found?.height !== height || found.levels !== levels || found.bands.from !== from) {
    found = { height, levels, bands: build(cells, rows, height, levels, from) };
    own.set(rows, found);
  }
  return found.bands;
}

const counts = new Int32Array(CODES);

/** Of the cells [from, to) of some bands: the state of most, ties to the latest; the largest level; all marks. */
export function poolBand(bands: Bands, from: number, to: number, levels: Uint8Array, out: Pool): void {
  const latest = bands.order[to - 1];
  let alike = latest < CODES;
  let level = 0;
  let marks = 0;
  for (let at = from; at < to; at++) {
    alike &&= bands.order[at] === latest;
    if (levels[at] > level) level = levels[at];
    marks |= bands.marks[at];
  }
  out.level = level;
  out.violated = (marks & VIOLATED) !== 0;
  out.state = alike ? latest - 1 : most(bands, from, to, latest);
}

function most(bands: Bands, from: number, to: number, latest: number): number {
  counts.fill(0);
  for (let at = from * CODES, code = 0; at < to * CODES; at++, code = (code + 1) & STATE_BITS) {
    counts[code] += bands.counts[at];
  }
  let best = 0;
  for (let s = 1; s < STATES; s++) if (counts[s] > counts[best]) best = s;
  for (let left = latest; left > 0; left >>= 3) if (counts[(left & 7) - 1] === counts[best]) return (left & 7) - 1;
  return best;
}
