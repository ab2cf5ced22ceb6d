/** Lines over steps: deltas on a log axis, shares as step lines, changes of outputs with a marker for each run. */

import { type ChangeAxis, changePlace, changeTicks } from "../data/function";
import { type Scale, toPixel } from "../data/scale";
import { drawMarker } from "./marker";
import type { Theme } from "./theme";

type Corner = [x: number, y: number];

interface Series {
  steps: Float64Array;
  /** NaN breaks the line. */
  values: Float64Array;
}

/** Where lines are drawn: at the context's origin. */
export interface Plot {
  context: CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;
  scale: Scale;
  height: number;
  theme: Theme;
}

/** Draws level lines at some heights; what is drawn next ends a margin outside of the plot, until it is restored. */
function begin({ context, scale, height, theme }: Plot, levels: readonly number[], margin: number): void {
  context.lineWidth = 1;
  context.strokeStyle = theme.line;
  context.beginPath();
  for (const y of levels) {
    context.moveTo(0, y);
    context.lineTo(scale.width, y);
  }
  context.stroke();
  context.save();
  context.beginPath();
  context.rect(0, -margin, scale.width, height + 2 * margin);
  context.clip();
}

/** The corners of a line, one list a piece: it breaks where a value has no corner, and between two that are parted. */
function piecesOf(
  values: Float64Array,
  cornersOf: (value: number, i: number) => Corner[],
  parted = (_before: number, _value: number) => false,
): Corner[][] {
  const pieces: Corner[][] = [[]];
  values.forEach((value, i) => {
    const corners = cornersOf(value, i);
    if (corners.length === 0 || parted(values[i - 1], value)) pieces.push([]);
    pieces[pieces.length - 1].push(...corners);
  });
  return pieces.filter((piece) => piece.length > 0);
}

function strokePieces({ context }: Plot, pieces: readonly Corner[][], color: string, width: number): void {
  context.strokeStyle = color;
  context.lineWidth = width;
  context.beginPath();
  for (const [first, ...others] of pieces) {
    context.moveTo(...first);
    for (const corner of others) context.lineTo(...corner);
  }
  context.stroke();
}

/** A channel's relative delta. */
export interface Line extends Series {
  color: string;
  bold: boolean;
}

/** Decades of the axis: from just under the smallest positive value (at most seven) up to at least 1. */
export function decades(lines: readonly Line[]): [number, number] {
  let low = 0;
  let high = 0;
  for (const line of lines) {
    for (const value of line.values) {
      if (!(value > 0) || !Number.isFinite(value)) continue;
      low = Math.min(low, Math.floor(Math.log10(value)));
      high = Math.max(high, Math.ceil(Math.log10(value)));
    }
  }
  high = Math.min(high, 3);
  return [Math.min(high - 1, Math.max(low, high - 7)), high];
}

export function levelY(value: number, [low, high]: [number, number], height: number): number {
  return height * (1 - (Math.log10(value) - low) / (high - low));
}

/** Draws line after line. A zero, a missing or a non-finite value breaks the line; a single value is a dot. */
export function* drawLines(plot: Plot, lines: readonly Line[], range: [number, number]): Generator<void> {
  const { context, scale, height } = plot;
  const count = range[1] - range[0] + 1;
  const levels = Array.from({ length: count }, (_, i) => Math.round(levelY(10 ** (range[0] + i), range, height)) + 0.5);
  begin(plot, levels, 1);
  context.lineJoin = "round";
  for (const { steps, values, color, bold } of [...lines].sort((a, b) => Number(a.bold) - Number(b.bold))) {
    const pieces = piecesOf(values, (value, i) => {
      if (!(value > 0) || !Number.isFinite(value)) return [];
      return [[toPixel(scale, steps[i]), Math.min(height, levelY(value, range, height))]];
    });
    strokePieces(plot, pieces, color, bold ? 2 : 1);
    context.fillStyle = color;
    for (const [[x, y], ...others] of pieces) if (others.length === 0) context.fillRect(x - 1.5, y - 1.5, 3, 3);
    yield;
  }
  context.restore();
}

/** A share of a channel's weights, 0 to 1: what a mask lets through stays until it changes. */
export interface ShareLine extends Series {
  dashed: boolean;
}

/** The corners of a step line in pixels, one list a piece without a gap. */
export const stepCorners = (line: ShareLine, end: number, scale: Scale, height: number, top = 0): Corner[][] =>
  piecesOf(line.values, (value, i) => {
    if (Number.isNaN(value)) return [];
    const y = height * (1 - value) + top;
    return [line.steps[i], line.steps[i + 1] ?? end].map((step): Corner => [toPixel(scale, step), y]);
  });

export function drawShares(plot: Plot, end: number, lines: readonly ShareLine[]): void {
  const { context, scale, height, theme } = plot;
  begin(plot, [0.5, Math.round(height / 2) + 0.5, height + 0.5], 2);
  for (const line of lines) {
    context.setLineDash(line.dashed ? [4, 3] : []);
    strokePieces(plot, stepCorners(line, end, scale, height - 1, 1), theme.text, 2);
  }
  context.restore();
}

/** A run's change of an output, its colour and its shape. */
export interface Trend extends Line {
  shape: number;
}

/** The lane of zeros below a logarithmic axis. */
export const LANE = 20;
/** Pixels between the markers of a line. */
const MARKERS = 110;

/** The height of a value; zeros of several runs are below one another in the lane. */
export function trendY(axis: ChangeAxis, value: number, height: number, run: number, runs: number): number {
  if (!axis.log) return height * (1 - changePlace(axis, value));
  if (value === 0) return height - LANE + 3 + ((run + 0.5) / runs) * (LANE - 3);
  return (height - LANE) * (1 - changePlace(axis, value));
}

/** Corners of a line, one list a piece: a gap breaks it, and so does a step to zero or from it on a log axis. */
export const trendPieces = (
  { steps, values }: Series,
  axis: ChangeAxis,
  scale: Scale,
  height: number,
  run: number,
  runs: number,
): Corner[][] =>
  piecesOf(
    values,
    (value, i) => (Number.isNaN(value) ? [] : [[toPixel(scale, steps[i]), trendY(axis, value, height, run, runs)]]),
    (before, value) => axis.log && (before === 0) !== (value === 0),
  );

export function drawTrends(plot: Plot, trends: readonly Trend[], axis: ChangeAxis): void {
  const { context, scale, height, theme } = plot;
  const levels = changeTicks(axis, 4).map((value) => Math.round(trendY(axis, value, height, 0, 1)) + 0.5);
  begin(plot, levels, 4);
  context.lineJoin = "round";
  const order = trends.map((trend, run) => ({ ...trend, run })).sort((a, b) => Number(a.bold) - Number(b.bold));
  for (const { run, shape, color, bold, ...series } of order) {
    const pieces = trendPieces(series, axis, scale, height, run, trends.length);
    // A single value is a short stroke.
    const stroke = ([x, y]: Corner): Corner[] => [-1.5, 1.5].map((half) => [x + half, y]);
    const drawn = pieces.map((piece) => (piece.length === 1 ? stroke(piece[0]) : piece));
    strokePieces(plot, drawn, color, bold ? 2 : 1.25);
    let next = 24 + ((run * 29) % MARKERS);
    for (const [x, y] of pieces.flat()) {
      if (x < next) continue;
      drawMarker(context, x, y, 3.5, shape, color, theme.panel);
      next = x + MARKERS;
    }
  }
  context.restore();
}
