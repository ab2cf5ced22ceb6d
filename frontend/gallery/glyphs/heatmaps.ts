/** Channels over steps, and the bars beside them. */

import type { Cells } from "../../src/data/cells";
import { differenceCells } from "../../src/data/difference";
import { FROZEN, MOVING, NO_DATA, NONFINITE, PRUNED, QUIET, VIOLATED } from "../../src/data/states";
import type { Mode } from "../../src/data/urlstate";
import { differenceStyle } from "../../src/draw/difference";
import { drawBars, drawCells } from "../../src/draw/heatmap";
import { pixelsOf } from "../../src/draw/theme";
import { always, type Cell, cellsOf, inOrder, life, steps, THRESHOLD } from "./fixtures";
import type { RasterGlyph } from "./glyph";

const heatmap = (name: string, cells: Cells, mode: Mode = "both", shown = cells.records): RasterGlyph => ({
  name: `heatmap-${name}`,
  width: 80,
  height: 48,
  paint: (area, theme) =>
    drawCells(area, cells, inOrder(cells), steps(shown, area.width), {
      mode,
      threshold: THRESHOLD,
      pixels: pixelsOf(theme),
    }),
});

/** A channel that moves although it is held, and one of which a part is. */
const leak: Cell = (c, t) => {
  if (c === 1 && t > 5) return [FROZEN | VIOLATED, 0.02];
  if (c === 2 && t > 8) return [MOVING | VIOLATED, 0.05];
  return c === 3 ? [PRUNED, 0] : [QUIET, THRESHOLD / 3];
};

/** One cell of 4,096 × 400. */
const rare: Cell = (c, t) => (c === 3000 && t === 250 ? [FROZEN | VIOLATED, 0.5] : [FROZEN, 0]);

const bars = (name: string, cells: Cells, record: number): RasterGlyph => ({
  name: `bars-${name}`,
  width: 54,
  height: 48,
  paint: (area, theme) => drawBars(area, cells, inOrder(cells), record, THRESHOLD, pixelsOf(theme)),
});

const sixteen = cellsOf(16, 40, life);
const many = cellsOf(4096, 40, (c, t) => life((c >> 6) % 16, t));

export const heatmaps: RasterGlyph[] = [
  heatmap("state", sixteen, "state"),
  heatmap("both", sixteen),
  heatmap("delta", sixteen, "delta"),
  heatmap(
    "one-channel",
    cellsOf(1, 40, (_, t) => life(1, t)),
  ),
  heatmap(
    "one-record",
    cellsOf(16, 1, (c) => life(c, 20)),
  ),
  heatmap("pruned", cellsOf(4, 10, always(PRUNED))),
  heatmap("4096-channels", many),
  heatmap("violated", cellsOf(4, 20, leak)),
  heatmap("violated-pooled", cellsOf(4096, 400, rare)),
  heatmap(
    "nonfinite",
    cellsOf(4, 20, (c, t) => (c === 1 ? [NONFINITE, Number.NaN] : [MOVING, 0.4 / (t + 1)])),
  ),
  heatmap(
    "not-recorded",
    cellsOf(4, 20, (c, t) => (c === 1 && t < 9 ? [NO_DATA, 0] : life(c, t))),
  ),
  heatmap("ends-early", cellsOf(16, 25, life), "both", 40),
  {
    name: "heatmap-difference",
    width: 80,
    height: 48,
    paint: (area, theme) => {
      const cells = differenceCells(
        sixteen,
        cellsOf(16, 40, (c, t) => life(c ^ 2, t)),
      );
      drawCells(area, cells, inOrder(cells), steps(40, area.width), differenceStyle(theme));
    },
  },
  bars("16-channels", sixteen, 12),
  bars("4096-channels", many, 12),
  bars("held-but-moved", cellsOf(4, 20, leak), 12),
  bars("no-record", sixteen, -1),
];
