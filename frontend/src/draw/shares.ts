/** Shares of a channel's weights over steps, as step lines: what a mask lets through stays until it changes. */

import { type Scale, toPixel } from "../data/scale";
import type { Theme } from "./theme";

export interface ShareLine {
  steps: Float64Array;
  /** 0 to 1; NaN breaks the line. */
  values: Float64Array;
  dashed: boolean;
}

/** The corners of a step line in pixels, one list a piece without a gap. */
export function stepCorners(line: ShareLine, end: number, scale: Scale, height: number): [number, number][][] {
  const pieces: [number, number][][] = [];
  let piece: [number, number][] | null = null;
  for (let i = 0; i < line.steps.length; i++) {
    const value = line.values[i];
    if (Number.isNaN(value)) {
      piece = null;
      continue;
    }
    if (!piece) {
      piece = [];
      pieces.push(piece);
    }
    const y = height * (1 - value);
    piece.push([toPixel(scale, line.steps[i]), y], [toPixel(scale, line.steps[i + 1] ?? end), y]);
  }
  return pieces;
}

export function drawShares(
  context: CanvasRenderingContext2D,
  scale: Scale,
  height: number,
  end: number,
  lines: readonly ShareLine[],
  theme: Theme,
): void {
  context.lineWidth = 1;
  context.strokeStyle = theme.line;
  context.beginPath();
  for (const y of [0.5, Math.round(height / 2) + 0.5, height + 0.5]) {
    context.moveTo(0, y);
    context.lineTo(scale.width, y);
  }
  context.stroke();
  context.save();
  context.beginPath();
  context.rect(0, -2, scale.width, height + 4);
  context.clip();
  context.lineWidth = 2;
  context.strokeStyle = theme.text;
  for (const line of lines) {
    context.setLineDash(line.dashed ? [4, 3] : []);
    context.beginPath();
    for (const piece of stepCorners(line, end, scale, height - 1)) {
      piece.forEach(([x, y], i) => {
        if (i === 0) context.moveTo(x, y + 1);
        else context.lineTo(x, y + 1);
      });
    }
    context.stroke();
  }
  context.restore();
}
