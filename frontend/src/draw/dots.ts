/** Rows of a dot plot: each a thin axis, the range of the values, a marker per run. */

import { drawMarker } from "./marker";
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
/** Of a marker and its halo, in CSS pixels. */
const HALF = 7;
/** Places within a device pixel that markers are drawn at. */
const PLACES = 8;

const sprites = new Map<string, OffscreenCanvas>();

/** A marker drawn once, at a place within a device pixel: a picture is copied faster than a path is filled. */
function spriteOf({ color, shape }: Dot, x: number, y: number, ratio: number, theme: Theme): OffscreenCanvas {
  const key = `${color} ${shape} ${x} ${y} ${ratio} ${theme.dark}`;
  let sprite = sprites.get(key);
  if (!sprite) {
    if (sprites.size > 4096) sprites.clear();
    const half = Math.ceil(HALF * ratio);
    sprite = new OffscreenCanvas(2 * half, 2 * half);
    const context = sprite.getContext("2d") as OffscreenCanvasRenderingContext2D;
    context.setTransform(ratio, 0, 0, ratio, half + x / PLACES, half + y / PLACES);
    drawMarker(context, 0, 0, RADIUS, shape, color, theme.panel);
    sprites.set(key, sprite);
  }
  return sprite;
}

/** Copies a marker to a place in device pixels. */
function putMarker(context: CanvasRenderingContext2D, dot: Dot, x: number, y: number, ratio: number, theme: Theme) {
  const [px, py] = [x, y].map((at) => Math.round(at * PLACES));
  const sprite = spriteOf(dot, px & (PLACES - 1), py & (PLACES - 1), ratio, theme);
  context.drawImage(sprite, Math.floor(px / PLACES) - sprite.width / 2, Math.floor(py / PLACES) - sprite.height / 2);
}

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
  const { a: ratio, e: left, f: top } = context.getTransform();
  context.setTransform(1, 0, 0, 1, 0, 0);
  for (const { y, dots } of rows) {
    for (const dot of dots) {
      if (Number.isNaN(dot.position)) continue;
      putMarker(context, dot, left + placeOf(dot) * ratio, top + (y + 0.5) * ratio, ratio, theme);
    }
  }
  context.setTransform(ratio, 0, 0, ratio, left, top);
}
