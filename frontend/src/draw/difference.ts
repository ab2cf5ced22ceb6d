/** The third of A | B | difference. Zoomed out, classes pool by majority (ties to the latest), differences by the largest. */

import { BOTH, type Grid, NEITHER, NO_DIFFERENCE, ONLY_A, ONLY_B, STEPS_A_SIDE, UNKNOWN } from "../model/difference";
import { pixelColumns, type Scale } from "../model/scale";
import { NO_DATA, PRUNED } from "../model/states";
import { blend, type Pixels, pack, ramp, type Theme } from "./palette";
import { type Box, type Raster, statePixel } from "./raster";

/** Gives the pixel of a pooled value at a place. */
export type Paint = (value: number, x: number, y: number) => number;

type Pool = (values: Int8Array, rows: Uint32Array, r0: number, r1: number, c0: number, c1: number, k: number) => number;

const counts = new Int32Array(NEITHER + 1);

const majority: Pool = (values, rows, r0, r1, c0, c1, k) => {
  counts.fill(0);
  for (let r = r0; r < r1; r++) for (let c = c0; c < c1; c++) counts[values[rows[r] * k + c]]++;
  const most = Math.max(...counts);
  for (let r = r1 - 1; r >= r0; r--) {
    const latest = values[rows[r] * k + c1 - 1];
    if (counts[latest] === most) return latest;
  }
  return counts.indexOf(most);
};

const largest: Pool = (values, rows, r0, r1, c0, c1, k) => {
  let found = NO_DIFFERENCE;
  for (let r = r0; r < r1; r++) {
    for (let c = c0; c < c1; c++) {
      const value = values[rows[r] * k + c];
      if (value !== NO_DIFFERENCE && (found === NO_DIFFERENCE || Math.abs(value) > Math.abs(found))) found = value;
    }
  }
  return found;
};

/** Draws a grid's rows in the given order; `signed` for differences, else classes. */
export function drawGrid(
  raster: Raster,
  box: Box,
  grid: Grid,
  rows: Uint32Array,
  scale: Scale,
  signed: boolean,
  paint: Paint,
): void {
  const pool = signed ? largest : majority;
  const k = grid.steps.length;
  const { from, to } = pixelColumns(grid.steps, grid.end, { ...scale, width: box.width });
  const line = new Int16Array(box.width);
  let before = -1;
  for (let dy = 0; dy < box.height; dy++) {
    const r0 = Math.floor((dy * rows.length) / box.height);
    const r1 = Math.max(r0 + 1, Math.floor(((dy + 1) * rows.length) / box.height));
    const y = box.y + dy;
    // A row that is taller than a pixel repeats; only hatch and dots depend on where they are.
    const repeats = r0 === before && r1 - r0 === 1;
    before = r0;
    for (let dx = 0; dx < box.width; dx++) {
      if (!repeats) {
        const same = dx > 0 && from[dx] === from[dx - 1] && to[dx] === to[dx - 1];
        if (from[dx] < 0) line[dx] = signed ? NO_DIFFERENCE : UNKNOWN;
        else line[dx] = same ? line[dx - 1] : pool(grid.values, rows, r0, r1, from[dx], to[dx], k);
      }
      raster.data[y * raster.width + box.x + dx] = paint(line[dx], box.x + dx, y);
    }
  }
}

/** What is alive in both, as the legend and the picture have it. */
export const bothColor = (theme: Theme): string => (theme.dark ? "#6b6d72" : "#c4c8ce");

/** The lines over "only B": run colours may be alike, so they aren't the only cue. */
export const lineColor = (theme: Theme, color: string): string =>
  blend([color, color, theme.dark ? "#000000" : "#ffffff"], 0.8);

/** Classes: grey, A's colour, B's colour under lines that lean back, and the hatch of pruned channels. */
export function paintClasses(theme: Theme, pixels: Pixels, colors: readonly [string, string], ratio: number): Paint {
  const flat = [0, pack(bothColor(theme)), pack(colors[0]), pack(colors[1])];
  const line = pack(lineColor(theme, colors[1]));
  const pitch = 8 * ratio;
  return (value, x, y) => {
    if (value === ONLY_B && (x + (pitch - 1) * y) % pitch < ratio) return line;
    if (value === BOTH || value === ONLY_A || value === ONLY_B) return flat[value];
    return statePixel(pixels, value === NEITHER ? PRUNED : NO_DATA, x, y, ratio);
  };
}

const ramps = new Map<Theme, Uint32Array>();

/** Differences on the diverging scale. */
export function paintSigned(theme: Theme, pixels: Pixels, ratio: number): Paint {
  const colours = ramps.get(theme) ?? ramp(theme.diverging, 2 * STEPS_A_SIDE + 1);
  ramps.set(theme, colours);
  return (value, x, y) =>
    value === NO_DIFFERENCE ? statePixel(pixels, NO_DATA, x, y, ratio) : colours[value + STEPS_A_SIDE];
}
