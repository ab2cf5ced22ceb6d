/** Lines, dots and markers. */

import { type Dot, paintDots } from "../../src/draw/dots";
import { decades, drawLines, drawShares, type Line, type ShareLine } from "../../src/draw/lines";
import { drawMarker, SHAPES } from "../../src/draw/marker";
import { makeRaster, putRaster } from "../../src/draw/raster";
import { runColor, type Theme } from "../../src/draw/theme";
import { steps } from "./fixtures";
import type { VectorGlyph } from "./glyph";

const RECORDS = Float64Array.from({ length: 20 }, (_, t) => t);

const line = (run: number, value: (t: number) => number, theme: Theme, bold = false): Line => ({
  steps: RECORDS,
  values: RECORDS.map(value),
  color: runColor(run, theme.dark),
  bold,
});

const lines = (name: string, made: (theme: Theme) => Line[]): VectorGlyph => ({
  name: `lines-${name}`,
  width: 80,
  height: 50,
  draw: (context, width, height, theme) => {
    const shown = made(theme);
    for (const _ of drawLines({ context, scale: steps(20, width), height: height - 2, theme }, shown, decades(shown)));
  },
});

const dots = (name: string, positions: number[]): VectorGlyph => ({
  name: `dots-${name}`,
  width: 80,
  height: 16,
  draw: (context, width, height, theme) => {
    const made: Dot[] = positions.map((position, run) => ({ position, color: runColor(run, theme.dark), shape: run }));
    const { a: ratio } = context.getTransform();
    const raster = makeRaster(context.canvas.width, context.canvas.height, ratio);
    for (const _ of paintDots(raster, ratio, 8, width - 16, [{ y: height / 2, dots: made }], theme));
    putRaster(context, raster);
  },
});

const share = (dashed: boolean, ...values: number[]): ShareLine => ({
  steps: Float64Array.from(values, (_, i) => 5 * i),
  values: Float64Array.from(values),
  dashed,
});

const shares = (name: string, ...made: ShareLine[]): VectorGlyph => ({
  name: `shares-${name}`,
  width: 80,
  height: 40,
  draw: (context, width, height, theme) =>
    drawShares({ context, scale: steps(20, width), height: height - 2, theme }, 18, made),
});

export const vectors: VectorGlyph[] = [
  lines("runs", (theme) => [
    line(0, (t) => 0.5 * 10 ** (-t / 6), theme),
    line(1, (t) => 0.1 * (1.2 + Math.sin(t)), theme, true),
  ]),
  lines("gaps", (theme) => [line(2, (t) => (t % 7 < 3 ? 0 : 0.01 * (t + 1)), theme)]),
  lines("one-record", (theme) => [line(3, (t) => (t === 9 ? 0.1 : Number.NaN), theme)]),
  lines("none", () => []),
  dots("runs", [0, 0.2, 0.45, 0.5, 0.8, 1]),
  dots("not-recorded", [Number.NaN, 0.3, Number.NaN, 0.9]),
  dots("none", []),
  shares("kept", share(false, 1, 0.5, 0.25, 0.125)),
  shares("both-masks", share(false, 1, 0.6, 0.6, 0.3), share(true, 1, 1, 0.5, 0.5)),
  shares("gap", share(false, 0, Number.NaN, 1)),
  {
    name: "markers",
    width: 20 * SHAPES + 4,
    height: 24,
    draw: (context, _, height, theme) => {
      for (let shape = 0; shape <= SHAPES; shape++)
        drawMarker(context, 12 + 18 * shape, height / 2, 6, shape, runColor(shape, theme.dark), theme.panel);
    },
  },
];
