/** Lines of all runs over steps, each with its colour and its shape; exact zeros have a lane of their own. */

import { type ChangeAxis, changePlace, changeTicks } from "../data/function";
import { type Scale, toPixel } from "../data/scale";
import { drawMarker } from "./marker";
import type { Theme } from "./theme";

export interface Trend {
  steps: Float64Array;
  /** NaN breaks the line. */
  values: Float64Array;
  color: string;
  shape: number;
  bold: boolean;
}

/** The lane of zeros below a logarithmic axis. */
export const LANE = 20;
const MARKERS = 110;

/** The height of a value; zeros of several runs lie below one another in the lane. */
export function trendY(axis: ChangeAxis, value: number, height: number, at: number, of: number): number {
  if (!axis.log) return height * (1 - changePlace(axis, value));
  if (value === 0) return height - LANE + 3 + ((at + 0.5) / of) * (LANE - 3);
  return (height - LANE) * (1 - changePlace(axis, value));
}

/** Corners of a line, one list a piece: a gap breaks it, and so does a step to zero or from it on a log axis. */
export function trendPieces(
  trend: Trend,
  axis: ChangeAxis,
  scale: Scale,
  height: number,
  at: number,
  of: number,
): [number, number][][] {
  const pieces: [number, number][][] = [];
  let piece: [number, number][] | null = null;
  let before = Number.NaN;
  trend.values.forEach((value, i) => {
    if (Number.isNaN(value) || (axis.log && (value === 0) !== (before === 0))) piece = null;
    before = value;
    if (Number.isNaN(value)) return;
    if (!piece) {
      piece = [];
      pieces.push(piece);
    }
    piece.push([toPixel(scale, trend.steps[i]), trendY(axis, value, height, at, of)]);
  });
  return pieces;
}

function drawTrend(
  context: CanvasRenderingContext2D,
  trend: Trend,
  pieces: [number, number][][],
  at: number,
  theme: Theme,
) {
  context.strokeStyle = trend.color;
  context.lineWidth = trend.bold ? 2 : 1.25;
  context.lineJoin = "round";
  context.beginPath();
  for (const piece of pieces) {
    // A value alone is a short stroke.
    const [first, last] = [piece[0], piece[piece.length - 1]];
    const half = piece.length === 1 ? 1.5 : 0;
    context.moveTo(first[0] - half, first[1]);
    for (const [x, y] of piece) context.lineTo(x, y);
    context.lineTo(last[0] + half, last[1]);
  }
  context.stroke();
  let next = 24 + ((at * 29) % MARKERS);
  for (const [x, y] of pieces.flat()) {
    if (x < next) continue;
    drawMarker(context, x, y, 3.5, trend.shape, trend.color, theme.panel);
    next = x + MARKERS;
  }
}

export function drawTrends(
  context: CanvasRenderingContext2D,
  scale: Scale,
  height: number,
  trends: readonly Trend[],
  axis: ChangeAxis,
  theme: Theme,
): void {
  context.lineWidth = 1;
  context.strokeStyle = theme.line;
  context.beginPath();
  for (const value of changeTicks(axis, 4)) {
    const y = Math.round(trendY(axis, value, height, 0, 1)) + 0.5;
    context.moveTo(0, y);
    context.lineTo(scale.width, y);
  }
  context.stroke();
  context.save();
  context.beginPath();
  context.rect(0, -4, scale.width, height + 8);
  context.clip();
  const order = trends.map((trend, at) => ({ trend, at })).sort((a, b) => Number(a.trend.bold) - Number(b.trend.bold));
  for (const { trend, at } of order) {
    drawTrend(context, trend, trendPieces(trend, axis, scale, height, at, trends.length), at, theme);
  }
  context.restore();
}
