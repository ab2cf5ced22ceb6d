/** A picture for paper as a list of marks, which become an SVG or the pixels of a PNG alike. */

import type { Box } from "./raster";

export type Mark =
  | { kind: "box"; box: Box; fill: string }
  /** From the left to the right, or from the top to the bottom. */
  | { kind: "gradient"; box: Box; colors: readonly string[]; down: boolean }
  /** Stripes that lean like those of pruned channels. */
  | { kind: "hatch"; box: Box; fill: string; line: string }
  /** From its left end, whichever way it is written. */
  | { kind: "text"; x: number; y: number; text: string; font: Font; fill: string; rightToLeft?: boolean }
  /** A path of SVG, moved and scaled. */
  | { kind: "path"; d: string; x: number; y: number; scale: number; fill: string }
  | { kind: "image"; box: Box; canvas: HTMLCanvasElement }
  | { kind: "clip"; box: Box; marks: readonly Mark[] };

export interface Font {
  weight: string;
  /** CSS pixels */
  size: number;
  family: string;
}

export const cssFont = ({ weight, size, family }: Font): string => `${weight} ${size}px ${family}`;

export interface Figure {
  /** The part of the marks' plane that it shows. */
  box: Box;
  marks: readonly Mark[];
}

const PITCH = 5;

/** The lines of a hatch. */
function hatchPath({ x, y, width, height }: Box): string {
  const lines: string[] = [];
  for (let at = -height; at < width; at += PITCH) lines.push(`M${x + at},${y + height}l${height},${-height}`);
  return lines.join("");
}

const CODES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
/** Also characters that XML doesn't allow, which names of layers may hold. */
const escaped = (text: string): string =>
  text.replace(/[\p{Cc}\ufffe\uffff]/gu, "\ufffd").replace(/[&<>"]/g, (letter) => CODES[letter]);
const rounded = (value: number): string => String(Math.round(100 * value) / 100);
const boxed = ({ x, y, width, height }: Box): string =>
  `x="${rounded(x)}" y="${rounded(y)}" width="${rounded(width)}" height="${rounded(height)}"`;

/** The figure as an SVG file: texts are texts, pictures of cells are images. */
export function toSvg({ box: { x, y, width, height }, marks }: Figure): string {
  let count = 0;
  const svgOf = (mark: Mark): string => {
    if (mark.kind === "text") {
      const { weight, size, family } = mark.font;
      const look = `font-family="${escaped(family)}" font-size="${size}" font-weight="${weight}" fill="${mark.fill}"`;
      const way = mark.rightToLeft ? 'direction="rtl" text-anchor="end" ' : "";
      return `<text x="${rounded(mark.x)}" y="${rounded(mark.y)}" dominant-baseline="central" xml:space="preserve" ${way}${look}>${escaped(mark.text)}</text>`;
    }
    if (mark.kind === "path") {
      const { x, y, scale } = mark;
      return `<path d="${mark.d}" fill="${mark.fill}" transform="translate(${rounded(x)} ${rounded(y)}) scale(${scale})"/>`;
    }
    const box = boxed(mark.box);
    if (mark.kind === "box") return `<rect ${box} fill="${mark.fill}"/>`;
    if (mark.kind === "image") {
      return `<image ${box} preserveAspectRatio="none" style="image-rendering:pixelated" href="${mark.canvas.toDataURL()}"/>`;
    }
    const id = `part${count++}`;
    if (mark.kind === "gradient") {
      const stops = mark.colors.map(
        (color, i) => `<stop offset="${i / (mark.colors.length - 1)}" stop-color="${color}"/>`,
      );
      const way = mark.down ? 'x2="0" y2="1"' : "";
      return `<linearGradient id="${id}" ${way}>${stops.join("")}</linearGradient><rect ${box} fill="url(#${id})"/>`;
    }
    const inner =
      mark.kind === "hatch"
        ? `<rect ${box} fill="${mark.fill}"/><path d="${hatchPath(mark.box)}" stroke="${mark.line}"/>`
        : mark.marks.map(svgOf).join("");
    return `<clipPath id="${id}"><rect ${box}/></clipPath><g clip-path="url(#${id})">${inner}</g>`;
  };
  const size = `width="${width}" height="${height}" viewBox="${rounded(x)} ${rounded(y)} ${width} ${height}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size}>${marks.map(svgOf).join("\n")}</svg>\n`;
}

/** Paints the figure, so many pixels for one of the page. */
export function paintFigure(canvas: HTMLCanvasElement, { box, marks }: Figure, ratio: number): void {
  canvas.width = Math.round(box.width * ratio);
  canvas.height = Math.round(box.height * ratio);
  const context = canvas.getContext("2d");
  context?.scale(ratio, ratio);
  context?.translate(-box.x, -box.y);
  if (context) paintMarks(context, marks);
}

function paintMarks(context: CanvasRenderingContext2D, marks: readonly Mark[]): void {
  for (const mark of marks) {
    context.save();
    paintMark(context, mark);
    context.restore();
  }
}

function paintMark(context: CanvasRenderingContext2D, mark: Mark): void {
  if (mark.kind === "text") {
    context.font = cssFont(mark.font);
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.direction = mark.rightToLeft ? "rtl" : "ltr";
    context.fillStyle = mark.fill;
    context.fillText(mark.text, mark.x, mark.y);
    return;
  }
  if (mark.kind === "path") {
    context.translate(mark.x, mark.y);
    context.scale(mark.scale, mark.scale);
    context.fillStyle = mark.fill;
    context.fill(new Path2D(mark.d));
    return;
  }
  const { x, y, width, height } = mark.box;
  if (mark.kind === "image") {
    context.imageSmoothingEnabled = false;
    context.drawImage(mark.canvas, x, y, width, height);
  } else if (mark.kind === "gradient") {
    const ramp = mark.down
      ? context.createLinearGradient(0, y, 0, y + height)
      : context.createLinearGradient(x, 0, x + width, 0);
    for (const [i, color] of mark.colors.entries()) ramp.addColorStop(i / (mark.colors.length - 1), color);
    context.fillStyle = ramp;
    context.fillRect(x, y, width, height);
  } else if (mark.kind === "box" || mark.kind === "hatch") {
    context.fillStyle = mark.fill;
    context.fillRect(x, y, width, height);
  }
  if (mark.kind !== "hatch" && mark.kind !== "clip") return;
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  if (mark.kind === "clip") paintMarks(context, mark.marks);
  else {
    context.strokeStyle = mark.line;
    context.stroke(new Path2D(hatchPath(mark.box)));
  }
}
