/** Lines of a channel's relative delta over steps, on a log axis. */

import { type Scale, toPixel } from "../data/scale";
import type { Theme } from "./theme";

type Context = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;

export interface Line {
  steps: Float64Array;
  values: Float64Array;
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

/**
 * Draws line after line into the context's origin. A zero, a missing or a non-finite value breaks the line; zeros sit at
 * the bottom as ticks.
 */
export function* drawLines(
  context: Context,
  scale: Scale,
  height: number,
  lines: readonly Line[],
  range: [number, number],
  theme: Theme,
): Generator<void> {
  context.lineWidth = 1;
  context.strokeStyle = theme.line;
  context.beginPath();
  for (let decade = range[0]; decade <= range[1]; decade++) {
    const y = Math.round(levelY(10 ** decade, range, height)) + 0.5;
    context.moveTo(0, y);
    context.lineTo(scale.width, y);
  }
  context.stroke();
  context.save();
  context.beginPath();
  context.rect(0, -1, scale.width, height + 2);
  context.clip();
  for (const line of [...lines].sort((a, b) => Number(a.bold) - Number(b.bold))) {
    drawLine(context, scale, height, line, range);
    yield;
  }
  context.restore();
}

function drawLine(context: Context, scale: Scale, height: number, line: Line, range: [number, number]) {
  context.strokeStyle = line.color;
  context.fillStyle = line.color;
  context.lineWidth = line.bold ? 2 : 1;
  context.lineJoin = "round";
  let open = false;
  let alone = false;
  let lastX = 0;
  let lastY = 0;
  const dot = () => {
    if (alone) context.fillRect(lastX - 1.5, lastY - 1.5, 3, 3);
  };
  context.beginPath();
  for (let i = 0; i < line.steps.length; i++) {
    const value = line.values[i];
    const x = toPixel(scale, line.steps[i]);
    if (!(value > 0) || !Number.isFinite(value)) {
      dot();
      open = alone = false;
      continue;
    }
    const y = Math.min(height, levelY(value, range, height));
    if (open) context.lineTo(x, y);
    else context.moveTo(x, y);
    alone = !open;
    open = true;
    lastX = x;
    lastY = y;
  }
  context.stroke();
  dot();
}
