/** Relative deltas on the wire: value = 2 ** (code / 16), with exact zero and infinity. */

export const DELTA_ZERO = -32768;
export const DELTA_INFINITE = 32767;
export const DELTA_NAN = 32766;
const CODES_AN_OCTAVE = 16;
/** Colour steps of the movement scale. */
export const LEVELS = 256;

export function deltaOf(code: number): number {
  if (code === DELTA_ZERO) return 0;
  if (code === DELTA_INFINITE) return Number.POSITIVE_INFINITY;
  if (code === DELTA_NAN) return Number.NaN;
  return 2 ** (code / CODES_AN_OCTAVE);
}

/** Where the movement scale ends. Training moves weights by about 1e-3 a step; from 0.1 on all is drawn alike. */
export function scaleTop(threshold: number): number {
  return Math.max(0.1, 10 * threshold);
}

const decades = { of: Number.NaN, span: 0 };

/** Place of a relative delta on the movement scale, 0 to 1: logarithmic from the threshold to the top. */
export function placeOf(delta: number, threshold: number): number {
  if (!(delta > threshold)) return 0;
  // Strips ask for each of their pixels, always with the same threshold.
  if (decades.of !== threshold)
    Object.assign(decades, { of: threshold, span: Math.log(scaleTop(threshold) / threshold) });
  return Math.min(1, Math.log(delta / threshold) / decades.span);
}

/** The colour of a relative delta, 0 to LEVELS - 1. */
export function levelOf(delta: number, threshold: number): number {
  return Math.round(placeOf(delta, threshold) * (LEVELS - 1));
}

let capped: Float32Array | null = null;

/** min(relative delta, 1) for each code, indexed by code + 32768; what isn't a number counts as 0. */
export function cappedTable(): Float32Array {
  if (!capped) {
    capped = new Float32Array(65536).fill(1);
    for (let code = -32768; code < 0; code++) capped[code + 32768] = deltaOf(code);
    capped[DELTA_NAN + 32768] = 0;
  }
  return capped;
}

const tables = new Map<number, Uint8Array>();

/** levelOf for each code, indexed by code + 32768; one table per threshold, the latest few kept. */
export function levelTable(threshold: number): Uint8Array {
  let table = tables.get(threshold);
  if (!table) {
    table = new Uint8Array(65536);
    // Codes from 0 on are deltas of 1 and more; those under -1024 are below any threshold.
    table.fill(LEVELS - 1, 32768);
    for (let code = -1024; code < 0; code++) table[code + 32768] = levelOf(deltaOf(code), threshold);
    table[DELTA_NAN + 32768] = 0;
    if (tables.size > 8) tables.clear();
    tables.set(threshold, table);
  }
  return table;
}
