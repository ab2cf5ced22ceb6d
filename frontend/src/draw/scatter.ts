/**
 * Weight change against output change, on two log axes: a dot per layer, its trail, and lanes for what doesn't move.
 */

import type { Move } from "../data/function";
import { type ChangeAxis, changePlace } from "../data/function";
import { drawMarker } from "./marker";
import type { Theme } from "./theme";

/** Lanes on the left and at the bottom, for zeros. */
export const STILL = 30;
const MARGIN = 8;

export interface ScatterFrame {
  width: number;
  height: number;
  /** The weights' axis and the outputs', both logarithmic. */
  x: ChangeAxis;
  y: ChangeAxis;
}

const along = (axis: ChangeAxis, value: number, size: number): number =>
  value === 0 ? STILL / 2 : STILL + MARGIN + changePlace(axis, value) * (size - STILL - 2 * MARGIN);

export const scatterX = ({ width, x }: ScatterFrame, weights: number): number => along(x, weights, width);
export const scatterY = ({ height, y }: ScatterFrame, output: number): number => height - along(y, output, height);

/** Where a layer's dot is; null where one of the two isn't known. */
export function spotOf(frame: ScatterFrame, move: Move): [number, number] | null {
  if (Number.isNaN(move.weights + move.output)) return null;
  return [scatterX(frame, move.weights), scatterY(frame, move.output)];
}

/** How much a layer is worth a label: first those whose output changed by others' doing, then the largest changes. */
export const notable = (move: Move): number => Math.log(move.output) + (move.weights === 0 ? 99 : 0);

export interface Label {
  layer: string;
  left: number;
  top: number;
  width: number;
}

export const LABEL_HEIGHT = 14;
const OFF = 7;

/**
 * Labels next to their dots that cover neither each other nor a dot; a layer with no free side has none.
 *
 * @param wanted layers by importance, with the width of their label.
 * @param dots all that is drawn.
 */
export function placeLabels(
  frame: ScatterFrame,
  wanted: readonly { layer: string; spot: [number, number]; width: number }[],
  dots: readonly [number, number][],
  most: number,
): Label[] {
  const labels: Label[] = [];
  const taken = dots.map(([x, y]) => [x - 4, y - 4, x + 4, y + 4]);
  for (const { layer, spot, width } of wanted) {
    const [x, y] = spot;
    for (const [left, top] of [
      [x + OFF, y - LABEL_HEIGHT / 2],
      [x - OFF - width, y - LABEL_HEIGHT / 2],
      [x - width / 2, y - OFF - LABEL_HEIGHT],
      [x - width / 2, y + OFF],
    ]) {
      const [right, bottom] = [left + width, top + LABEL_HEIGHT];
      const outside = left < 0 || top < 0 || right > frame.width || bottom > frame.height;
      if (outside || taken.some(([l, t, r, b]) => left < r && l < right && top < b && t < bottom)) continue;
      taken.push([left, top, right, bottom]);
      labels.push({ layer, left, top, width });
      break;
    }
    if (labels.length === most) break;
  }
  return labels;
}

interface Look {
  color: string;
  shape: number;
  /** The layer that is selected or under the pointer. */
  chosen: string | null;
}

/** Draws the layers of `columns`, oldest first: trails that fade towards the oldest, the last ones as dots. */
export function drawScatter(
  context: CanvasRenderingContext2D,
  frame: ScatterFrame,
  columns: readonly (readonly Move[])[],
  look: Look,
  theme: Theme,
): void {
  const lines = (color: string, segments: readonly (readonly number[])[]) => {
    context.strokeStyle = color;
    context.beginPath();
    for (const [fromX, fromY, toX, toY] of segments) {
      context.moveTo(fromX, fromY);
      context.lineTo(toX, toY);
    }
    context.stroke();
  };
  const { width, height, x, y } = frame;
  const upright = (at: number) => [Math.round(at) + 0.5, 0, Math.round(at) + 0.5, height];
  const level = (at: number) => [0, Math.round(at) + 0.5, width, Math.round(at) + 0.5];
  context.lineWidth = 1;
  const grid: number[][] = [];
  for (let decade = x.low; decade <= x.high; decade++) grid.push(upright(scatterX(frame, 10 ** decade)));
  for (let decade = y.low; decade <= y.high; decade++) grid.push(level(scatterY(frame, 10 ** decade)));
  lines(theme.line, grid);
  lines(theme.muted, [upright(STILL), level(height - STILL)]);
  // As much as the weights, where both axes have it.
  const [from, to] = [10 ** Math.max(x.low, y.low), 10 ** Math.min(x.high, y.high)];
  context.setLineDash([4, 4]);
  const alike = [from, to].flatMap((value) => [scatterX(frame, value), scatterY(frame, value)]);
  lines(theme.muted, from < to ? [alike] : []);
  context.setLineDash([]);
  const spots = columns.map((column) => column.map((move) => spotOf(frame, move)));
  // Many trails would be one blot.
  context.lineWidth = 60 / Math.max(60, ...spots.map((column) => column.length));
  for (let i = 1; i < columns.length; i++) {
    context.globalAlpha = (0.5 * i) / columns.length;
    const trail = spots[i].flatMap((spot, place) => {
      const last = spots[i - 1][place];
      return spot && last ? [[...last, ...spot]] : [];
    });
    lines(look.color, trail);
  }
  context.globalAlpha = 1;
  const chosen = (move: Move) => Number(move.layer === look.chosen);
  for (const move of [...(columns[columns.length - 1] ?? [])].sort((a, b) => chosen(a) - chosen(b))) {
    const spot = spotOf(frame, move);
    if (!spot) continue;
    const fill = move.weights === 0 ? theme.states[move.state] : look.color;
    drawMarker(context, ...spot, 4.5 + 2 * chosen(move), look.shape, fill, theme.panel);
    // The fill of an unmoved layer shows its state; the outline is the run's, or that of the selection.
    if (move.weights > 0 && !chosen(move)) continue;
    context.strokeStyle = chosen(move) ? theme.text : look.color;
    context.stroke();
  }
}
