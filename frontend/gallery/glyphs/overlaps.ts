/** Two runs compared: values over steps, and the third of A | B | difference. */

import { drawGrid, paintClasses, paintSigned } from "../../src/draw/difference";
import { drawValues } from "../../src/draw/overlap";
import { pixelsOf, runColor } from "../../src/draw/palette";
import { aliveIn, type Grid, movesMore } from "../../src/model/difference";
import type { MaskKind } from "../../src/model/hash";
import { FROZEN, MOVING, PRUNED } from "../../src/model/states";
import { type Cell, cellsOf, inOrder, life, steps, THRESHOLD } from "./fixtures";
import type { RasterGlyph } from "./glyph";

const starts = Float64Array.from({ length: 40 }, (_, t) => t);

const values = (name: string, made: ((t: number) => number) | null): RasterGlyph => ({
  name: `overlap-${name}`,
  width: 80,
  height: 16,
  paint: (raster, box, theme) => {
    const drawn = made && Float64Array.from(starts, made);
    drawValues(raster, box, drawn, { starts, end: 40 }, steps(40, box.width), theme, pixelsOf(theme));
  },
});

/** Every second channel held from some step on, otherwise than in `life`. */
const other: Cell = (c, t) => {
  if (c % 2 === 1 && t >= 14 + c) return [c % 3 === 0 ? FROZEN : PRUNED, 0];
  return [MOVING, 0.3 * 10 ** (-t / 20 - (15 - c) / 10)];
};
const [a, b] = [cellsOf(16, 40, life), cellsOf(16, 36, other)];

const classes = (mask: MaskKind): RasterGlyph => ({
  name: `classes-${mask}`,
  width: 80,
  height: 48,
  paint: (raster, box, theme) => {
    const colors = [runColor(1, theme.dark), runColor(4, theme.dark)] as const;
    const paint = paintClasses(theme, pixelsOf(theme), colors, raster.ratio);
    drawGrid(raster, box, aliveIn(a, b, mask), inOrder(a), steps(40, box.width), false, paint);
  },
});

const signed = (name: string, grid: Grid, channels: number): RasterGlyph => ({
  name: `moves-more-${name}`,
  width: 80,
  height: 48,
  paint: (raster, box, theme) => {
    const rows = Uint32Array.from({ length: channels }, (_, c) => c);
    drawGrid(raster, box, grid, rows, steps(40, box.width), true, paintSigned(theme, pixelsOf(theme), raster.ratio));
  },
});

/** One channel of a thousand moves a hundred times as much, at one step. */
const rare: Cell = (c, t) => [MOVING, c === 700 && t === 20 ? 0.5 : 0.005];

export const overlaps: RasterGlyph[] = [
  values("values", (t) => t / 39),
  values("known-late", (t) => (t < 12 ? Number.NaN : 0.4)),
  values("not-compared", null),
  classes("kept"),
  classes("trainable"),
  signed("16-channels", movesMore(a, b, THRESHOLD), 16),
  signed(
    "pooled",
    movesMore(
      cellsOf(1000, 40, () => [MOVING, 0.005]),
      cellsOf(1000, 40, rare),
      THRESHOLD,
    ),
    1000,
  ),
];
