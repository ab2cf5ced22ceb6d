/** Rows of cells pooled into bands, one a row of pixels: what each picture of these rows takes, whatever its steps. */

import type { Cells } from "../data/cells";
import { kept } from "../data/kept";
import { MOVING, NONFINITE, REACTIVATED, STATE_BITS, STATES, VIOLATED } from "../data/states";

const CODES = STATE_BITS + 1;
/** Cells of bands that are made at a time: 32 MB. */
const MOST = 4 * 2 ** 20;

export interface Bands {
  cells: Cells;
  /** The channels, from the top. */
  rows: Uint32Array;
  /** Of all rows, in pixels. */
  height: number;
  levels: Uint8Array;
  /** Whether the level of every cell counts, not only of the moving ones. */
  all: boolean;
  /** The rows of pixels that they are made for. */
  from: number;
  end: number;
  /** Where the cells of each one's band begin. */
  at: Int32Array;
  /**
   * By cell of a band: the states that occur from the lowest row up, three bits each, code + 1 (none for nonfinite,
   * which is never mixed); what is rare and occurs; from `LEVEL` on the largest level.
   */
  sums: Uint32Array;
  /** By cell the place of its counts by state, from 1 on; 0 until they are asked for. */
  places: Uint32Array;
  counts: Uint16Array;
  counted: number;
}

export const ANY_VIOLATED = 0x40000;
export const ANY_NONFINITE = 0x100000;
export const ANY_REACTIVATED = 0x200000;
const RARE = ANY_VIOLATED | ANY_NONFINITE | ANY_REACTIVATED;
export const LEVEL = 24;
const ORDER = 0x3ffff;
const NO_LEVEL = 0xffffff;

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
  return (rest & ORDER) | code;
}

/** Adds a row of cells to those of its band. */
function addRow(sums: Uint32Array, to: number, cells: Cells, first: number, levels: Uint8Array, all: boolean): void {
  const { state, delta, records } = cells;
  for (let t = 0; t < records; t++) {
    const byte = state[first + t];
    const code = byte & STATE_BITS;
    const previous = sums[to + t];
    let sum = previous;
    if (byte & VIOLATED) sum |= ANY_VIOLATED;
    if (code === NONFINITE) {
      sums[to + t] = sum | ANY_NONFINITE;
      continue;
    }
    if ((sum & 7) !== code + 1) sum = (sum & ~ORDER) | front(sum & ORDER, code + 1);
    if (code === REACTIVATED) sum |= ANY_REACTIVATED;
    if (all || code === MOVING) {
      const level = levels[delta[first + t]];
      if (level > sum >>> LEVEL) sum = (sum & NO_LEVEL) | (level << LEVEL);
    }
    if (sum !== previous) sums[to + t] = sum;
  }
}

function build(cells: Cells, rows: Uint32Array, height: number, from: number, levels: Uint8Array, all: boolean): Bands {
  const { records } = cells;
  const end = Math.min(height, from + Math.max(1, Math.floor(MOST / records)));
  const sums = new Uint32Array(Math.min(end - from, rows.length) * records);
  const at = new Int32Array(end - from);
  for (let dy = from, to = -records, before = -1; dy < end; dy++) {
    const [first, last] = rowsUnder(dy, height, rows.length);
    if (first !== before) {
      to += records;
      for (let r = first; r < last; r++) addRow(sums, to, cells, rows[r] * records, levels, all);
    }
    before = first;
    at[dy - from] = to;
  }
  const places = new Uint32Array(sums.length);
  return { cells, rows, height, levels, all, from, end, at, sums, places, counts: new Uint16Array(CODES), counted: 0 };
}

const latest = kept((_cells: Cells) => new WeakMap<Uint32Array, Bands>());

/** The bands of some rows from a row of pixels on, kept until a picture of the same rows needs others. */
export function bandsOf(
  cells: Cells,
  rows: Uint32Array,
  height: number,
  from: number,
  levels: Uint8Array,
  all: boolean,
): Bands {
  const own = latest(cells);
  const last = own.get(rows);
  if (last?.height === height && last.from === from && last.levels === levels && last.all === all) return last;
  const bands = build(cells, rows, height, from, levels, all);
  own.set(rows, bands);
  return bands;
}

/**
 * Of the cells [from, to) of a band what `sums` holds of one: the states of the last, the largest level, all that is
 * rare.
 */
export function poolBand(sums: Uint32Array, from: number, to: number): number {
  let pooled = sums[to - 1];
  let mixed = (pooled & ORDER) > STATE_BITS;
  for (let at = from; at < to - 1; at++) {
    const sum = sums[at];
    if ((sum ^ pooled) & ORDER) mixed = true;
    pooled |= sum & RARE;
    if (sum >>> LEVEL > pooled >>> LEVEL) pooled = (pooled & NO_LEVEL) | (sum & ~NO_LEVEL);
  }
  return mixed ? pooled | MIXED : pooled & ~MIXED;
}

/** Set in what `poolBand` gives where more than one state occurs. */
export const MIXED = 0x80000;

/** The place of a cell's counts by state, counted when first asked for: few cells of a picture are mixed. */
function countsOf(bands: Bands, cell: number, [r0, r1]: readonly [number, number], t: number): number {
  let place = bands.places[cell];
  if (place > 0) return place;
  place = ++bands.counted * CODES;
  if (place >= bands.counts.length) {
    const more = new Uint16Array(2 * place);
    more.set(bands.counts);
    bands.counts = more;
  }
  const { cells, rows, counts } = bands;
  for (let r = r0; r < r1; r++) counts[place + (cells.state[rows[r] * cells.records + t] & STATE_BITS)]++;
  bands.places[cell] = place;
  return place;
}

const sum = new Uint32Array(CODES);

/**
 * The state of most of the cells, those of rows under a pixel and records [c0, c1); ties go to the latest.
 *
 * @param first where the cells of the band begin.
 * @param pooled what `poolBand` gave.
 */
export function mostOf(
  bands: Bands,
  first: number,
  under: readonly [number, number],
  c0: number,
  c1: number,
  pooled: number,
): number {
  sum.fill(0);
  for (let t = c0; t < c1; t++) {
    const place = countsOf(bands, first + t, under, t);
    for (let s = 0; s < CODES; s++) sum[s] += bands.counts[place + s];
  }
  let best = 0;
  for (let s = 1; s < STATES; s++) if (sum[s] > sum[best]) best = s;
  for (let left = pooled & ORDER; left > 0; left >>= 3) {
    if (sum[(left & 7) - 1] === sum[best]) return (left & 7) - 1;
  }
  return best;
}
