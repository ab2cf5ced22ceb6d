/** A lane: the strip of a run's states, its learning rate and a scalar below, flags above. */

import { FLAGS } from "../data/flags";
import { type Scale, toPixel } from "../data/scale";
import { axisEnd } from "../data/steps";
import type { Lane } from "./columns";
import { makeRaster, putRaster, wholeOf } from "./raster";
import { drawStrip } from "./strip";
import { type Pixels, pixelsOf, type Theme } from "./theme";

/** The heights of a lane's parts, from its top. */
export interface LaneShape {
  flags: number;
  strip: number;
  chart: number;
  height: number;
}

const [FLAG, SMALL_FLAG] = [9, 7];

/** What a lane of a height has room for: all parts, or the strip with flags on it. A rate without a scalar needs little. */
export function laneShape(height: number, scalars: boolean): LaneShape {
  const gap = height >= 40 ? 6 : 3;
  const room = height - gap;
  if (height < 40) return { flags: 0, strip: room, chart: 0, height };
  const flags = FLAG + 3;
  const strip = Math.round((room - flags) * (scalars ? 0.5 : 0.7));
  return { flags, strip, chart: room - flags - strip - 2, height };
}

/** Points that a line goes through; NaN breaks it. */
export interface Trend {
  at: Float64Array;
  values: ArrayLike<number>;
}

/** The color of a kind of flags. */
export function flagColor(kind: string, theme: Theme): string {
  if (kind === "violation") return theme.violated;
  if (kind.endsWith("freeze")) return theme.states[4];
  if (kind === "nonfinite") return theme.states[7];
  return kind === "resume" ? theme.muted : theme.text;
}

/** The least and the largest of the finite values of some trends. */
function spanOf(trends: readonly (Trend | null)[]): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const trend of trends) {
    for (let i = 0; i < (trend?.values.length ?? 0); i++) {
      const value = trend!.values[i];
      if (!Number.isFinite(value)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  return low <= high ? [low, high] : [0, 1];
}

/** A lane whose own values span less than this share of all looks like a straight line. */
const FLAT = 0.2;

/** The span that each trend is drawn in: one for all, or each its own where most would be flat in a common one. */
export function commonSpans(trends: readonly (Trend | null)[]): [number, number][] {
  const all = spanOf(trends);
  const own = trends.map((trend) => spanOf([trend]));
  const flat = own.filter(([low, high], i) => trends[i] && high - low < FLAT * (all[1] - all[0]));
  return 2 * flat.length > trends.filter(Boolean).length ? own : own.map(() => all);
}

type Context = CanvasRenderingContext2D;

interface Chart {
  scale: Scale;
  top: number;
  height: number;
}

/** A line through points; `steps` holds each value until the next point. */
function drawTrend(
  context: Context,
  { at, values }: Trend,
  [low, high]: readonly [number, number],
  { scale, top, height }: Chart,
  steps: boolean,
): void {
  const yOf = (value: number) => top + height - 1 - ((value - low) / (high - low || 1)) * (height - 2);
  let last: number | null = null;
  context.beginPath();
  for (let i = 0; i < at.length; i++) {
    if (!Number.isFinite(values[i])) {
      last = null;
      continue;
    }
    const [x, y] = [toPixel(scale, at[i]), yOf(values[i])];
    if (last === null) context.moveTo(x, y);
    else if (steps) context.lineTo(x, last);
    context.lineTo(x, y);
    last = y;
  }
  if (steps && last !== null) context.lineTo(toPixel(scale, axisEnd(at, at)), last);
  context.stroke();
}

/** Flags as shapes over a thin line down the strip; several at one place are side by side. */
function drawFlags(context: Context, lane: Lane, top: number, shape: LaneShape, scale: Scale, theme: Theme): void {
  let right = Number.NEGATIVE_INFINITY;
  const size = shape.height < 24 ? SMALL_FLAG : FLAG;
  for (const { kind, first_step, last_step } of lane.flags) {
    const x = toPixel(scale, first_step);
    const end = toPixel(scale, last_step);
    if (end < 0 || x > scale.width) continue;
    const color = flagColor(kind, theme);
    const y = top + (shape.flags > 0 ? 0 : (shape.strip - size) / 2);
    context.fillStyle = color;
    if (end > x) context.fillRect(x, y + size / 2 - 1, end - x, 2);
    if (shape.flags > 0) context.fillRect(Math.round(x) - 0.5, y + size, 1, shape.flags - size + shape.strip);
    context.save();
    const own = Math.min(Math.max(x - size / 2, 0), scale.width - size);
    const left = right > own && right - own <= 2 * size ? right : own;
    right = left + size + 1;
    context.translate(left, y);
    context.scale(size / 10, size / 10);
    const path = new Path2D(FLAGS[kind]?.path);
    context.strokeStyle = theme.panel;
    context.lineWidth = 2.5;
    if (shape.flags === 0) context.stroke(path);
    context.fill(path, "evenodd");
    context.restore();
  }
}

/** What a lane is drawn from. */
export interface Drawable {
  lane: Lane;
  scalar: Trend | null;
  color: string;
}

/** Draws a lane at a height of the picture, which is `ratio` device pixels to one. */
export function drawLane(
  context: Context,
  { lane, scalar, color }: Drawable,
  span: readonly [number, number],
  top: number,
  shape: LaneShape,
  scale: Scale,
  theme: Theme,
  ratio: number,
): void {
  const pixels: Pixels = pixelsOf(theme);
  const raster = makeRaster(Math.round(scale.width * ratio), Math.round(shape.strip * ratio), ratio);
  drawStrip(wholeOf(raster), lane.columns, scale, lane.threshold, pixels);
  putRaster(context as CanvasRenderingContext2D, raster, 0, Math.round((top + shape.flags) * ratio));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const chart = { scale, top: top + shape.flags + shape.strip + 2, height: shape.chart };
  if (shape.chart > 0) {
    context.save();
    context.beginPath();
    context.rect(0, chart.top - 1, scale.width, chart.height + 2);
    context.clip();
    const rate: Trend = { at: lane.columns.starts, values: lane.rates };
    [context.strokeStyle, context.lineWidth] = [theme.muted, 1];
    context.setLineDash([3, 2]);
    drawTrend(context, rate, [0, spanOf([rate])[1]], chart, true);
    context.setLineDash([]);
    [context.strokeStyle, context.lineWidth] = [color, 1.5];
    if (scalar) drawTrend(context, scalar, span, chart, false);
    context.restore();
  }
  drawFlags(context, lane, top, shape, scale, theme);
  context.setTransform(1, 0, 0, 1, 0, 0);
}
