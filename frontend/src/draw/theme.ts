/** The colours of the two themes, as hex text and as packed pixels. */

import { kept } from "../data/kept";
import { LEVELS } from "../data/scale";
import { LISTED, STATE_NAMES } from "../data/states";

export type Stops = readonly [string, string, string];

function makeTheme(dark: boolean) {
  const either = <T>(light: T, other: T): T => (dark ? other : light);
  return {
    dark,
    /** Low, middle and high end of the movement scale. */
    movement: either<Stops>(["#ffdc9c", "#f2902f", "#b8380a"], ["#85481a", "#e07d22", "#ffc65e"]),
    /** Overlap and kept shares, 0 to 1. */
    overlap: either<Stops>(["#f1f3f4", "#6fbcae", "#00574b"], ["#3a3d40", "#2f7f78", "#b9f2e4"]),
    /** Differences: less, equal, more. */
    diverging: either<Stops>(["#00695c", "#f4f4f6", "#6a2391"], ["#4fd1bd", "#3a3b3e", "#d9a3ff"]),
    /** Flat colours by state code; the empty string for no data. */
    states: either(
      ["", "#f2902f", "#4a0f4e", "#93bde4", "#2459a6", "#eceef1", "#1e3b2c", "#149476"],
      ["", "#e07d22", "#ffffff", "#7fb2e0", "#2f63b5", "#3e4043", "#c3e1b4", "#988f88"],
    ),
    hatch: either("#d3d7dc", "#55585c"),
    violated: either("#d466ff", "#ff99ff"),
    panel: either("#ffffff", "#303030"),
    text: either("#202124", "#ffffff"),
    muted: either("#5f6368", "#bdbdbd"),
    line: either("#e0e0e0", "#4c4c4c"),
    /** From the least to the largest of some values. */
    range: either("#a9adb2", "#8a8d91"),
    dot: either("#c3c7cc", "#6b6e72"),
  };
}

export type Theme = Readonly<ReturnType<typeof makeTheme>>;
export const [LIGHT, DARK]: readonly [Theme, Theme] = [makeTheme(false), makeTheme(true)];

/** The custom properties that style sheets take colours of the pictures from. */
export const variablesOf = (theme: Theme): Record<string, string> => ({
  ...Object.fromEntries(LISTED.map((state) => [STATE_NAMES[state], theme.states[state]])),
  ...Object.fromEntries((["hatch", "violated", "panel", "text", "muted"] as const).map((name) => [name, theme[name]])),
  movement: `linear-gradient(90deg, ${theme.movement.join(", ")})`,
});

/** A run's colour, as TensorBoard's Time Series takes it from the index of the run. */
export function runColor(index: number, dark: boolean): string {
  const colors = ["#425066", "#12b5cb", "#e52592", "#f9ab00", "#9334e6", "#7cb342", "#e8710a"];
  return index % 7 === 0 && dark ? "#8e98a3" : colors[index % 7];
}

/** Red, green and blue of a colour, 0 to 255. */
export const channels = (hex: string): number[] => [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));

/** A pixel of an ImageData seen as little-endian u32. */
export function pack(hex: string): number {
  const [r, g, b] = channels(hex);
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

/** The colour between three stops at a position from 0 to 1, as hex. */
export function blend(stops: Stops, position: number): string {
  const [low, middle, high] = stops.map(channels);
  const [a, b, t] = position < 0.5 ? [low, middle, position * 2] : [middle, high, position * 2 - 1];
  const mixed = a.map((value, i) => Math.round(value + (b[i] - value) * t));
  return `#${mixed.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}

/** A scale of three stops as pixels, from its low to its high end. */
const ramp = (stops: Stops, levels: number): Uint32Array =>
  Uint32Array.from({ length: levels }, (_, i) => pack(blend(stops, i / (levels - 1))));

const HALF = 127;

const makePixels = (theme: Theme) => ({
  movement: ramp(theme.movement, LEVELS),
  /** Overlap and kept shares, LEVELS of them. */
  overlap: ramp(theme.overlap, LEVELS),
  /** From -1, less than the other, over 0 in the middle to 1, more; see `divergingPixel`. */
  diverging: ramp(theme.diverging, 2 * HALF + 1),
  /** By state code; 0 is transparent. */
  states: Uint32Array.from(theme.states, (hex) => (hex === "" ? 0 : pack(hex))),
  hatch: pack(theme.hatch),
  dot: pack(theme.dot),
  violated: pack(theme.violated),
});

export interface Pixels extends ReturnType<typeof makePixels> {
  /** Lines over the reactivated state, where that stands for something else. */
  lines?: number;
}

/** The theme as pixels, made once. */
export const pixelsOf = kept((theme: Theme): Pixels => makePixels(theme));

/** The pixel of a difference from -1 to 1; 0 is exactly the middle colour. */
export const divergingPixel = (pixels: Pixels, place: number): number =>
  pixels.diverging[Math.round((place + 1) * HALF)];
