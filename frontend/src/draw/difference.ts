/**
 * The colours of two runs against each other: how far apart channels are, where they remain, how much masks overlap.
 */

import { BOTH, distanceLevels, ONLY_A, ONLY_B, TRAINS } from "../data/difference";
import { kept } from "../data/kept";
import type { Scale } from "../data/scale";
import { LEVELS } from "../data/scale";
import { MOVING } from "../data/states";
import { axisEnd } from "../data/steps";
import { type Container, section } from "../server/container";
import type { OverlapLayersHeader } from "../server/types";
import type { HeatmapStyle } from "./heatmap";
import type { Area } from "./raster";
import { blend, channels, divergingPixel, type Pixels, pack, pixelsOf, type Theme } from "./theme";
import { drawValues } from "./valuerow";

/** Draws the cells of a difference as a heatmap: distances on the diverging scale, states flat. */
export const differenceStyle = kept((theme: Theme): HeatmapStyle => {
  const pixels = pixelsOf(theme);
  const states = Uint32Array.from(pixels.states);
  states[TRAINS] = pixels.states[MOVING];
  // A level is a distance and, in its last bit, a direction.
  const movement = Uint32Array.from({ length: LEVELS }, (_, level) => {
    const place = (level >> 1) / (LEVELS / 2 - 1);
    return divergingPixel(pixels, level & 1 ? place : -place);
  });
  return { mode: "both", threshold: 0, levels: distanceLevels(), pixels: { ...pixels, states, movement } };
});

/** Remaining in both. */
export const bothColor = (theme: Theme): string => (theme.dark ? "#6b6d72" : "#c4c8ce");

/** The lines over "only B": run colours may be alike, so they aren't the only cue. */
export const lineColor = (theme: Theme, color: string): string =>
  blend([color, color, theme.dark ? "#000000" : "#ffffff"], 0.8);

/** Grey, A's colour, B's colour under lines that lean back, and the hatch of pruned channels. */
export function aliveStyle(theme: Theme, [a, b]: readonly [string, string]): HeatmapStyle {
  const pixels = pixelsOf(theme);
  const states = Uint32Array.from(pixels.states);
  states[BOTH] = pack(bothColor(theme));
  states[ONLY_A] = pack(a);
  states[ONLY_B] = pack(b);
  return { mode: "state", threshold: 1, pixels: { ...pixels, states, lines: pack(lineColor(theme, b)) } };
}

/** The colour of a value from 0 to 1, and the one of black and white that is read on it. */
export function overlapStyle(theme: Theme, value: number): { background: string; color: string } {
  const background = blend(theme.overlap, value);
  const [r, g, b] = channels(background).map((value) => {
    const part = value / 255;
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
