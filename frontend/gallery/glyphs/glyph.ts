/** What the gallery of glyphs shows: named fixtures, each one entry of a list. */

import type { VNode } from "preact";
import type { Area } from "../../src/draw/raster";
import type { Theme } from "../../src/draw/theme";

interface Sized {
  /** Names its golden picture too. */
  name: string;
  /** CSS pixels. */
  width: number;
  height: number;
}

/** Every pixel is computed: tests compare it exactly. */
export interface RasterGlyph extends Sized {
  paint: (area: Area, theme: Theme) => void;
}

/** Lines and shapes that the browser smooths: tests allow for another way of smoothing. */
export interface VectorGlyph extends Sized {
  draw: (context: CanvasRenderingContext2D, width: number, height: number, theme: Theme) => void;
}

/** A piece of the page with its style sheets; without text, which depends on the fonts of the machine. */
export interface ElementGlyph extends Sized {
  element: (theme: Theme) => VNode;
}

export type Glyph = RasterGlyph | VectorGlyph | ElementGlyph;
