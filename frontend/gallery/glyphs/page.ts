/** The gallery of glyphs: each fixture at device ratios 1 and 2, with its name. */

import { render } from "preact";
import { makeRaster, putRaster, wholeOf } from "../../src/draw/raster";
import { DARK, LIGHT, type Theme } from "../../src/draw/theme";
import { adoptStyles, styleViews } from "../../src/style";
import compare from "../../src/style/compare.css";
import functions from "../../src/style/function.css";
import inspector from "../../src/style/inspector.css";
import layer from "../../src/style/layer.css";
import network from "../../src/style/network.css";
import { elements } from "./elements";
import { functionCells, functionVectors } from "./functions";
import type { Glyph } from "./glyph";
import { heatmaps } from "./heatmaps";
import { overlaps } from "./overlaps";
import { differences, strips } from "./strips";
import { vectors } from "./vectors";

const GLYPHS: Glyph[] = [
  ...strips,
  ...differences,
  ...heatmaps,
  ...overlaps,
  ...functionCells,
  ...vectors,
  ...functionVectors,
  ...elements,
];

const OWN = `
body { overflow: auto; padding: 16px; }
body > div { height: auto; }
.glyphs { display: grid; grid-template-columns: repeat(auto-fill, 400px); gap: 18px; }
.glyphs figure { margin: 0; }
.glyphs figcaption { margin-top: 4px; font-size: 11px; line-height: 16px; color: var(--muted); }
.glyphs .sizes { display: flex; align-items: start; gap: 8px; }
.glyphs .sizes > * { background: var(--panel); overflow: hidden; flex: none; }
`;

function canvasOf(glyph: Exclude<Glyph, { element: unknown }>, ratio: number, theme: Theme): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = glyph.width * ratio;
  canvas.height = glyph.height * ratio;
  const context = canvas.getContext("2d")!;
  if ("paint" in glyph) {
    const raster = makeRaster(canvas.width, canvas.height, ratio);
    glyph.paint(wholeOf(raster), theme);
    putRaster(context, raster);
  } else {
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    glyph.draw(context, glyph.width, glyph.height, theme);
    // Beneath it, as the page's panel is: some glyphs replace all pixels.
    context.globalCompositeOperation = "destination-over";
    context.fillStyle = theme.panel;
    context.fillRect(0, 0, glyph.width, glyph.height);
  }
  return canvas;
}

function pieceOf(glyph: Extract<Glyph, { element: unknown }>, ratio: number, theme: Theme): HTMLElement {
  const piece = document.createElement("div");
  Object.assign(piece.style, { width: `${glyph.width}px`, height: `${glyph.height}px`, zoom: ratio });
  render(glyph.element(theme), piece);
  return piece;
}

function figureOf(glyph: Glyph, theme: Theme): HTMLElement {
  const figure = document.createElement("figure");
  figure.dataset.glyph = glyph.name;
  figure.dataset.kind = "paint" in glyph ? "raster" : "draw" in glyph ? "vector" : "element";
  const sizes = document.createElement("div");
  sizes.className = "sizes";
  for (const ratio of [1, 2])
    sizes.append("element" in glyph ? pieceOf(glyph, ratio, theme) : canvasOf(glyph, ratio, theme));
  figure.append(sizes);
  figure.appendChild(document.createElement("figcaption")).textContent = glyph.name;
  return figure;
}

const theme = location.search.includes("dark") ? DARK : LIGHT;
document.documentElement.classList.toggle("dark", theme.dark);
adoptStyles();
styleViews([network, layer, inspector, compare, functions, OWN].join("\n"));
const place = document.createElement("div");
place.className = "glyphs";
place.append(...GLYPHS.map((glyph) => figureOf(glyph, theme)));
document.body.append(place);
document.documentElement.dataset.pastnetIdle = "true";
