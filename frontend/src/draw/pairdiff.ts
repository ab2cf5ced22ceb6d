/** The colours of where a channel is alive: in both runs, in one of them, in none. */

import { BOTH, ONLY_A, ONLY_B } from "../data/difference";
import type { HeatmapStyle } from "./heatmap";
import { blend, pack, pixelsOf, type Theme } from "./theme";

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
