/** Changes of outputs: cells over steps, lines of runs, and weights against outputs. */

import type { ChangeAxis, FunctionSeries, Move } from "../../src/data/function";
import { FROZEN, MOVING, PRUNED, QUIET } from "../../src/data/states";
import { drawTrends, type Trend } from "../../src/draw/lines";
import { drawScatter } from "../../src/draw/scatter";
import { pixelsOf, runColor, type Theme } from "../../src/draw/theme";
import { drawChanges } from "../../src/draw/valuerow";
import { steps } from "./fixtures";
import type { RasterGlyph, VectorGlyph } from "./glyph";

const AXIS: ChangeAxis = { log: true, low: -4, high: 0 };

/** One place with one measure. */
const seriesOf = (values: number[]): FunctionSeries => ({
  header: { places: [{}], measures: ["relative"] } as unknown as FunctionSeries["header"],
  steps: Float64Array.from(values, (_, t) => t),
  pastSteps: Float64Array.from(values, (_, t) => t - 1),
  end: values.length,
  values: Float32Array.from(values),
  rows: new Map([["layer/a", 0]]),
});

const cells = (name: string, values: number[]): RasterGlyph => ({
  name: `change-${name}`,
  width: 80,
  height: 16,
  paint: (area, theme) => {
    const style = { change: "relative", axis: AXIS, pixels: pixelsOf(theme) } as const;
    drawChanges(area, seriesOf(values), 0, steps(values.length, area.width), style);
  },
});

const falling = (count: number) => Array.from({ length: count }, (_, t) => 10 ** ((-4.2 * t) / count));

const trend = (run: number, theme: Theme, value: (t: number) => number): Trend => ({
  steps: Float64Array.from({ length: 20 }, (_, t) => t),
  values: Float64Array.from({ length: 20 }, (_, t) => value(t)),
  color: runColor(run, theme.dark),
  shape: run,
  bold: run === 1,
});

const trends = (name: string, axis: ChangeAxis, made: (theme: Theme) => Trend[]): VectorGlyph => ({
  name: `trends-${name}`,
  width: 120,
  height: 70,
  draw: (context, width, height, theme) =>
    drawTrends({ context, scale: steps(20, width), height: height - 2, theme }, made(theme), axis),
});

const move = (layer: string, weights: number, output: number, state = MOVING): Move => ({
  layer,
  weights,
  output,
  state,
});

const scatter = (name: string, columns: Move[][], chosen: string | null = null): VectorGlyph => ({
  name: `scatter-${name}`,
  width: 120,
  height: 110,
  draw: (context, width, height, theme) => {
    const look = { color: runColor(1, theme.dark), shape: 1, chosen };
    drawScatter(context, { width, height, x: AXIS, y: AXIS }, columns, look, theme);
  },
});

const column = (t: number): Move[] => [
  move("conv1", 0.3 / (t + 1), 0.5 / (t + 1)),
  move("conv2", 0.1 / 2 ** t, 0.02),
  move("head", 0.004, 0.002 * (t + 1)),
];

export const functionCells: RasterGlyph[] = [
  cells("falling", falling(20)),
  cells("stands-still", [0.1, 0.1, 0, 0, 0, 0.01, 0.01, 0, 0, 0]),
  cells("no-value", [0.1, Number.NaN, Number.NaN, 0.01, Number.POSITIVE_INFINITY, 0.001]),
  cells("pooled", [...Array(399).fill(1e-4), 1, ...Array(400).fill(1e-4)]),
];

export const functionVectors: VectorGlyph[] = [
  trends("runs", AXIS, (theme) => [
    trend(0, theme, (t) => 0.5 / (t + 1)),
    trend(1, theme, (t) => 0.2 * 10 ** (-t / 8)),
  ]),
  trends("zeros", AXIS, (theme) => [
    trend(0, theme, (t) => (t < 8 ? 0.3 : 0)),
    trend(1, theme, (t) => (t % 7 < 3 ? 0 : 0.01)),
  ]),
  trends("gap", AXIS, (theme) => [trend(2, theme, (t) => (t === 10 ? 0.1 : t > 6 && t < 15 ? Number.NaN : 0.01))]),
  trends("shares", { log: false, low: 0, high: 0.2 }, (theme) => [trend(3, theme, (t) => 0.01 * t)]),
  scatter("trails", [0, 1, 2, 3].map(column)),
  scatter("chosen", [0, 1, 2, 3].map(column), "conv2"),
  scatter("still", [
    [
      move("frozen", 0, 0.1, FROZEN),
      move("pruned", 0, 0.01, PRUNED),
      move("quiet", 0, 0, QUIET),
      move("same", 0.1, 0),
      move("unknown", Number.NaN, 0.1),
    ],
  ]),
];
