/** Two runs compared: values over steps, and where channels are alive. */

import { aliveIn } from "../../src/data/difference";
import { FROZEN, MOVING, PRUNED } from "../../src/data/states";
import type { MaskKind } from "../../src/data/urlstate";
import { aliveStyle } from "../../src/draw/difference";
import { drawCells } from "../../src/draw/heatmap";
import { pixelsOf, runColor } from "../../src/draw/theme";
import { drawValues } from "../../src/draw/valuerow";
import { type Cell, cellsOf, inOrder, life, steps } from "./fixtures";
import type { RasterGlyph } from "./glyph";

const starts = Float64Array.from({ length: 40 }, (_, t) => t);

const values = (name: string, made: ((t: number) => number) | null): RasterGlyph => ({
  name: `overlap-${name}`,
  width: 80,
  height: 16,
  paint: (area, theme) => {
    const drawn = made && Float64Array.from(starts, made);
    drawValues(area, drawn, { starts, end: 40 }, steps(40, area.width), pixelsOf(theme));
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
  paint: (area, theme) => {
    const colors = [runColor(1, theme.dark), runColor(4, theme.dark)] as const;
    drawCells(area, aliveIn(a, b, mask), inOrder(a), steps(40, area.width), aliveStyle(theme, colors));
  },
});

export const overlaps: RasterGlyph[] = [
  values("values", (t) => t / 39),
  values("known-late", (t) => (t < 12 ? Number.NaN : 0.4)),
  values("not-compared", null),
  classes("kept"),
  classes("trainable"),
];
