/** The state strip, and its difference to a baseline. */

import { FROZEN, MOVING, NO_DATA, NONFINITE, PRUNED, QUIET, REACTIVATED, VIOLATED } from "../../src/data/states";
import type { Columns } from "../../src/draw/columns";
import { drawStrip } from "../../src/draw/strip";
import { pixelsOf } from "../../src/draw/theme";
import { drawStripDifference } from "../../src/draw/valuerow";
import { always, type Cell, columnsFrom, life, steps, THRESHOLD } from "./fixtures";
import type { RasterGlyph } from "./glyph";

const strip = (name: string, columns: Columns | null, shown = 40): RasterGlyph => ({
  name: `strip-${name}`,
  width: 80,
  height: 24,
  paint: (area, theme) => drawStrip(area, columns, steps(shown, area.width), THRESHOLD, pixelsOf(theme)),
});

const some = (cell: Cell, channels = 16, records = 40): Columns => columnsFrom(channels, records, cell);

/** One channel of sixteen moves although frozen, for three records. */
const leak: Cell = (c, t) => (c === 5 && t >= 20 && t < 23 ? [FROZEN | VIOLATED, 0.01] : [FROZEN, 0]);

export const strips: RasterGlyph[] = [
  strip("moving", some(always(MOVING))),
  strip("reactivated", some(always(REACTIVATED))),
  strip("quiet", some(always(QUIET))),
  strip("frozen", some(always(FROZEN))),
  strip("pruned", some(always(PRUNED))),
  strip("stacked", some(life)),
  strip("violated", some(leak)),
  strip(
    "violated-pooled",
    columnsFrom(16, 800, (c, t) => (t === 400 ? [PRUNED | VIOLATED, 0.01] : life(c, t / 20))),
    800,
  ),
  strip(
    "nonfinite",
    some((c, t) => (c === 3 && t > 20 ? [NONFINITE, 0] : life(c, t))),
  ),
  strip("not-recorded", null),
  strip(
    "some-not-recorded",
    some((c, t) => (c < 8 ? [NO_DATA, 0] : life(c, t))),
  ),
  strip("ends-early", some(life, 16, 25)),
  strip("one-record", some(life, 16, 1), 1),
  strip(
    "one-channel",
    some((_, t) => life(1, t), 1),
  ),
];

/** The baseline prunes nothing. */
const whole = some((c, t) => (c % 4 === 3 ? [MOVING, 0.1] : life(c, t)));

export const differences: RasterGlyph[] = (["pruned", "moving", "delta"] as const).map((measure) => ({
  name: `strip-difference-${measure}`,
  width: 80,
  height: 24,
  paint: (area, theme) =>
    drawStripDifference(area, some(life, 16, 34), whole, measure, steps(40, area.width), pixelsOf(theme)),
}));
