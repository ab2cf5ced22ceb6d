/** Overlap or kept share of layers over steps: a row a layer, its colour the value. */

import type { Scale } from "../data/scale";
import { axisEnd } from "../data/steps";
import { type Container, section } from "../server/container";
import type { OverlapLayersHeader } from "../server/types";
import type { Area } from "./raster";
import { blend, type Pixels, type Theme } from "./theme";
import { drawValues } from "./valuerow";

/** The colour of a value from 0 to 1, and the one of black and white that is read on it. */
export function overlapStyle(theme: Theme, value: number): { background: string; color: string } {
  const background = blend(theme.overlap, value);
  const [r, g, b] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(background.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  // Above this luminance black has more contrast than white.
  return { background, color: 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.1791 ? "#000000" : "#ffffff" };
}

/** Overlap of two runs by layer and column of steps, for what draws. */
export interface OverlapColumns {
  header: OverlapLayersHeader;
  /** Draws the row of a layer: their overlap, or the share of its elements that one of them keeps. */
  draw(area: Area, row: number, which: "overlap" | "kept" | "other_kept", scale: Scale, pixels: Pixels): void;
  /** Numbers that it holds. */
  size: number;
}

export function readOverlapColumns(container: Container<OverlapLayersHeader>): OverlapColumns {
  const { header } = container;
  const starts = section(container, "first_steps", Float64Array);
  const axis = { starts, end: axisEnd(starts, section(container, "steps", Float64Array)) };
  const k = starts.length;
  return {
    header,
    size: header.layers.length * k,
    draw(area, row, which, scale, pixels) {
      const values = container.sections.get(which)?.subarray(row * k, (row + 1) * k);
      const whole = which === "overlap" ? 1 : header.elements[row];
      const shares = row < 0 || !values ? null : Float64Array.from(values, (value) => value / whole);
      drawValues(area, shares, axis, scale, pixels);
    },
  };
}
