/** One row of the dot plot: a thin axis, the range of the values, a marker per run. */

import { drawMarker } from "./marker";
import type { Theme } from "./palette";

export interface Dot {
  /** 0 to 1; NaN isn't drawn. */
  position: number;
  color: string;
  shape: number;
}

export function drawDots(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  width: number,
  dots: readonly Dot[],
  theme: Theme,
): void {
  const shown = dots.filter((dot) => !Number.isNaN(dot.position));
  context.lineWidth = 1;
  context.strokeStyle = theme.line;
  context.beginPath();
  context.moveTo(x, y + 0.5);
  context.lineTo(x + width, y + 0.5);
  for (const end of [x + 0.5, x + width - 0.5]) {
    context.moveTo(end, y - 4);
    context.lineTo(end, y + 5);
  }
  context.stroke();
  if (shown.length === 0) return;
  const positions = shown.map((dot) => x + dot.position * width);
  context.strokeStyle = theme.dark ? "#8a8d91" : "#a9adb2";
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(Math.min(...positions), y + 0.5);
  context.lineTo(Math.max(...positions), y + 0.5);
  context.stroke();
  shown.forEach((dot, i) => {
    drawMarker(context, positions[i], y + 0.5, 4, dot.shape, dot.color, theme.panel);
  });
}
