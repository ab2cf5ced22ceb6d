/** Rows of a dot plot: each a thin axis, the range of the values, a marker per run. */

import { traceMarker } from "./marker";
import type { Theme } from "./palette";

export interface Dot {
  /** 0 to 1; NaN isn't drawn. */
  position: number;
  color: string;
  shape: number;
}

export interface DotRow {
  y: number;
  /** Those of each row by the same runs. */
  dots: readonly Dot[];
}

const RADIUS = 4;

/** Draws all rows at once: few long paths are drawn faster than many short ones, and rows don't touch. */
export function drawDots(
  context: CanvasRenderingContext2D,
  x: number,
  width: number,
  rows: readonly DotRow[],
  theme: Theme,
): void {
  const placeOf = (dot: Dot) => x + dot.position * width;
  context.lineWidth = 1;
  context.strokeStyle = theme.line;
  context.beginPath();
  for (const { y } of rows) {
    context.moveTo(x, y + 0.5);
    context.lineTo(x + width, y + 0.5);
    for (const end of [x + 0.5, x + width - 0.5]) {
      context.moveTo(end, y - 4);
      context.lineTo(end, y + 5);
    }
  }
  context.stroke();
  context.strokeStyle = theme.dark ? "#8a8d91" : "#a9adb2";
  context.lineWidth = 2;
  context.beginPath();
  for (const { y, dots } of rows) {
    const places = dots.map(placeOf).filter((place) => !Number.isNaN(place));
    context.moveTo(Math.min(...places), y + 0.5);
    context.lineTo(Math.max(...places), y + 0.5);
  }
  context.stroke();
  context.strokeStyle = theme.panel;
  context.lineWidth = 1.5;
  rows[0]?.dots.forEach(({ color, shape }, run) => {
    context.beginPath();
    for (const { y, dots } of rows) {
      if (!Number.isNaN(dots[run].position)) traceMarker(context, placeOf(dots[run]), y + 0.5, RADIUS, shape);
    }
    context.fillStyle = color;
    context.stroke();
    context.fill();
  });
}
