/** The colours of two runs of one layer against each other: how far channels are apart, and in which run they are alive. */

import { BOTH, distanceLevels, ONLY_A, ONLY_B, TRAINS } from "../data/difference";
import { kept } from "../data/kept";
import { LEVELS } from "../data/scale";
import { MOVING } from "../data/states";
import type { HeatmapStyle } from "./heatmap";
import { blend, divergingPixel, pack, pixelsOf, type Theme } from "./theme";

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

/** Alive in both. */
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
