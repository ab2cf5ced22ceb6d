/** What a view shows as a figure: its canvases, its texts where they stand, and a legend. */

import { formatCount, formatPower } from "../data/format";
import { isolated, isRightToLeft } from "../data/names";
import { scaleTop } from "../data/scale";
import { MOVING, NONFINITE, PRUNED, STATE_TITLES } from "../data/states";
import { cssFont, type Figure, type Font, type Mark, paintFigure, toSvg } from "../draw/figure";
import type { Box } from "../draw/raster";
import { fitted, textWidth } from "../draw/text";
import type { Theme } from "../draw/theme";
import { cursor } from "../state/cursor";
import { listed, shownRuns, threshold } from "../state/runs";
import { theme } from "../state/store";
import type { View } from "../views/view";

type Shown = Pick<View, "caption" | "states">;

/** Controls are of no use on paper. */
const SKIPPED =
  ".offscreen, .controls, .button.small, .violation-mark, .zoom-box, .crosshairs, .layer-title .button, .failure .button, .lost button, .old button, select[aria-label^=Order]";
const MARGIN = 15;
const LINE = 22;
/** The lines of the title. */
const ABOVE = 20 + LINE + 14;

const boxOf = ({ left: x, top: y, width, height }: DOMRect): Box => ({ x, y, width, height });
const seen = (color: string): boolean => color !== "" && !/^rgba\(.*, 0\)$|^transparent$/.test(color);
const fontOf = (style: CSSStyleDeclaration): Font => ({
  weight: style.fontWeight,
  size: Number.parseFloat(style.fontSize),
  family: style.fontFamily,
});

const widthIn = (font: Font) => (text: string) => textWidth(text, cssFont(font));

/** The marks of an element's box: its fill, and the borders that it has. */
function* boxMarks(rect: DOMRect, style: CSSStyleDeclaration): Generator<Mark> {
  const box = boxOf(rect);
  if (seen(style.backgroundColor)) yield { kind: "box", box, fill: style.backgroundColor };
  const colors: string[] = style.backgroundImage.match(/rgba?\([^)]*\)/g) ?? [];
  if (style.backgroundImage.startsWith("repeating-")) {
    yield { kind: "hatch", box, fill: colors[colors.length - 1], line: colors[0] };
  } else if (colors.length > 1) {
    yield { kind: "gradient", box, colors, down: !/90deg|to right/.test(style.backgroundImage) };
  }
  const { x, y, width, height } = box;
  for (const side of ["Top", "Right", "Bottom", "Left"] as const) {
    const size = Number.parseFloat(style[`border${side}Width`]);
    const fill = style[`border${side}Color`];
    if (!(size > 0) || style[`border${side}Style`] === "none" || !seen(fill)) continue;
    const lying = side === "Top" || side === "Bottom";
    const at = { x: side === "Right" ? x + width - size : x, y: side === "Bottom" ? y + height - size : y };
    yield { kind: "box", box: { ...at, width: lying ? width : size, height: lying ? size : height }, fill };
  }
}

/** The words of a text as they stand: one that breaks is several. A text from right to left is taken by lines. */
function* piecesOf(node: Text): Generator<{ text: string; box: DOMRect }> {
  const range = document.createRange();
  const select = (start: number, end: number) => {
    range.setStart(node, start);
    range.setEnd(node, end);
    return range;
  };
  // Each change of the way in which it is written begins another box.
  const onOneLine = (start: number, end: number) => {
    const [first, ...rest] = select(start, end).getClientRects();
    return rest.every(({ top }) => top < (first.top + first.bottom) / 2);
  };
  const endOfLine = (start: number, last: number) => {
    if (onOneLine(start, last)) return last;
    let [end, beyond] = [start + 1, last];
    while (beyond - end > 1) {
      const middle = (end + beyond) >> 1;
      if (onOneLine(start, middle)) end = middle;
      else beyond = middle;
    }
    return end;
  };
  for (const { 0: word, index } of node.data.matchAll(isRightToLeft(node.data) ? /\S(.*\S)?/gs : /\S+/g)) {
    const last = index + word.length;
    for (let start = index, end: number; start < last; start = end) {
      end = endOfLine(start, last);
      yield { text: node.data.slice(start, end), box: select(start, end).getBoundingClientRect() };
    }
  }
}

/** Whether what is too long for its box ends in sight, as a path does: the text itself is one from left to right. */
const cutsBeginnings = (element: Element): boolean =>
  getComputedStyle(element.closest("bdi")?.parentElement ?? element).direction === "rtl";

/** The part of a text inside a box; an ellipsis replaces what is cut off. */
function* textMarks(node: Text, inside: DOMRect): Generator<Mark> {
  const parent = node.parentElement;
  if (node.data.trim() === "" || !parent) return;
  const style = getComputedStyle(parent);
  const font = fontOf(style);
  for (const { text, box } of piecesOf(node)) {
    if (box.top > inside.bottom) return;
    if (box.width === 0 || box.bottom > inside.bottom + 3 || box.left >= inside.right) continue;
    const letters = (room: number) => Math.max(0, Math.floor((room / box.width) * text.length));
    let [x, shown] = [box.left, text];
    const rightToLeft = style.direction === "rtl";
    if (isRightToLeft(text)) {
      const [left, right] = [Math.max(box.left, inside.left), Math.min(box.right, inside.right)];
      if (box.width > right - left + 1) shown = fitted(text, right - left, widthIn(font));
      x = rightToLeft ? right - widthIn(font)(shown) : left;
    } else if (box.right > inside.right + 1) shown = `${text.slice(0, letters(inside.right - x - box.height / 2))}…`;
    else if (x < inside.left - 1 && cutsBeginnings(parent)) {
      x = inside.left;
      shown = `…${text.slice(text.length - letters(box.right - x - box.height))}`;
    }
    const cased = style.textTransform === "uppercase" ? shown.toUpperCase() : shown;
    yield { kind: "text", x, y: box.top + box.height / 2, text: cased, font, fill: style.color, rightToLeft };
    if (box.right > inside.right + 1) return;
  }
}

/** Icons and markers are one path, circle or polygon each, in their colour. */
function* shapeMarks(svg: SVGSVGElement, box: DOMRect): Generator<Mark> {
  const shape = svg.querySelector("path, circle, polygon");
  if (!shape) return;
  const { x, y, width } = svg.viewBox.baseVal;
  const scale = box.width / width;
  const own = shape.getAttribute("fill");
  const fill = !own || own === "currentColor" ? getComputedStyle(svg).color : own;
  const [points, r] = [shape.getAttribute("points"), Number(shape.getAttribute("r"))];
  const round = `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0z`;
  const d = shape.getAttribute("d") ?? (points ? `M${points.replaceAll(" ", "L")}Z` : round);
  yield { kind: "path", d, x: box.left - x * scale, y: box.top - y * scale, scale, fill };
}

function overlap(a: DOMRect, b: DOMRect): DOMRect {
  const [left, top] = [Math.max(a.left, b.left), Math.max(a.top, b.top)];
  const [right, bottom] = [Math.min(a.right, b.right), Math.min(a.bottom, b.bottom)];
  return new DOMRect(left, top, Math.max(0, right - left), Math.max(0, bottom - top));
}

/** The marks of what is below an element. */
function* marksIn(element: Element, inside: DOMRect): Generator<Mark> {
  for (const child of element.childNodes) {
    if (child instanceof Text) yield* textMarks(child, inside);
    if (!(child instanceof Element) || child.matches(SKIPPED)) continue;
    const style = getComputedStyle(child);
    if (style.visibility === "hidden" || style.display === "none") continue;
    const rect = child.getBoundingClientRect();
    if (child instanceof SVGSVGElement) yield* shapeMarks(child, rect);
    if (!(child instanceof HTMLElement)) continue;
    const clipped = style.overflowX !== "visible" && style.display !== "inline";
    const shown = clipped ? overlap(rect, inside) : inside;
    const marks = [...boxMarks(rect, style)];
    if (child instanceof HTMLCanvasElement) marks.push({ kind: "image", box: boxOf(rect), canvas: child });
    else if (child instanceof HTMLSelectElement) {
      const [text, y] = [child.selectedOptions[0]?.text ?? "", rect.top + rect.height / 2];
      marks.push({ kind: "text", x: rect.left + 2, y, text, font: fontOf(style), fill: style.color });
    } else marks.push(...marksIn(child, shown));
    if (clipped && marks.length > 0) yield { kind: "clip", box: boxOf(shown), marks };
    else yield* marks;
  }
}

/** What the legend of a view that shows such states explains: a swatch, and its text. */
function legendOf(shown: readonly number[]): [(box: Box) => Mark, string][] {
  const colors = theme.value;
  const plain = (fill: string) => (box: Box) => ({ kind: "box", box, fill }) as const;
  const swatches: Record<number, (box: Box) => Mark> = {
    [PRUNED]: (box) => ({ kind: "hatch", box, fill: colors.states[PRUNED], line: colors.hatch }),
    [MOVING]: (box) => ({ kind: "gradient", box, colors: colors.movement, down: false }),
  };
  const span = `, Δ from ${formatPower(threshold.value)} to ${formatPower(scaleTop(threshold.value))}`;
  const states = listed.value
    .filter((state) => shown.includes(state))
    .map((state): [(box: Box) => Mark, string] => [
      swatches[state] ?? plain(colors.states[state]),
      `${STATE_TITLES[state]}${state === MOVING ? span : ""}`,
    ]);
  if (!shown.includes(MOVING)) return states;
  return [...states, [plain(colors.violated), "Violated"], [plain(colors.states[NONFINITE]), STATE_TITLES[NONFINITE]]];
}

/** The legend in lines of a width, and where it ends. */
function placeLegend(left: number, top: number, width: number, font: Font, shown: readonly number[]) {
  const marks: Mark[] = [];
  const start = left + MARGIN;
  let [x, y] = [start, top];
  for (const [swatch, text] of legendOf(shown)) {
    const wide = 30 + widthIn(font)(text);
    if (x > start && x + wide > left + width) [x, y] = [start, y + LINE];
    marks.push(swatch({ x, y: y - 5, width: 20, height: 10 }));
    marks.push({ kind: "text", x: x + 26, y, text, font, fill: theme.value.text });
    x += wide + 14;
  }
  return { marks, bottom: y + LINE };
}

/** What readers who have only the picture should know: whether all of it was loaded, and is new. */
function reservation(): string {
  const has = (selector: string) => document.querySelector(`main ${selector}`) !== null;
  if (has(".failure") || has(".lost")) return " · in part not loaded";
  return has(".old") ? " · in part of an earlier time" : "";
}

/** The two lines above: what is shown, of which runs. */
function titleMarks(caption: string, { x: left, y: top, width }: Box, font: Font, colors: Theme): Mark[] {
  const facts = `step ${formatCount(cursor.value)} · quiet below ${formatPower(threshold.value)}${reservation()}`;
  const runs = `Runs: ${shownRuns.value.map(({ name }) => isolated(name)).join(", ")}`;
  const [x, y, room] = [left + MARGIN, top + 20, width - 2 * MARGIN];
  const bold = { ...font, weight: "500", size: 14 };
  const line = (text: string, font: Font) =>
    ({ kind: "text", x, text: fitted(text, room, widthIn(font)), font }) as const;
  return [
    { ...line(`${isolated(caption)} · ${facts}`, bold), y, fill: colors.text },
    { ...line(runs, font), y: y + LINE, fill: colors.muted },
  ];
}

/** The visible part of the view, between a title (runs, step and threshold) and a legend. */
function figureOf(main: HTMLElement, { caption, states }: Shown): Figure {
  const panels = main.getBoundingClientRect();
  const font = { weight: "400", size: 12, family: getComputedStyle(main).fontFamily };
  const [x, y, width] = [panels.left, panels.top - ABOVE, Math.ceil(panels.width)];
  const legend = placeLegend(x, panels.bottom + LINE / 2, width, font, states);
  const box = { x, y, width, height: Math.ceil(legend.bottom - y) };
  const view: Mark = { kind: "clip", box: boxOf(panels), marks: [...marksIn(main, panels)] };
  const paper: Mark = { kind: "box", box, fill: theme.value.panel };
  return { box, marks: [paper, ...titleMarks(caption(), box, font, theme.value), view, ...legend.marks] };
}

/** The view as a file: an SVG, or a PNG of twice the page's pixels; null where the browser refuses. */
export function viewPicture(main: HTMLElement, view: Shown, kind: "svg" | "png"): Promise<Blob | null> {
  const figure = figureOf(main, view);
  if (kind === "svg") return Promise.resolve(new Blob([toSvg(figure)], { type: "image/svg+xml" }));
  const canvas = document.createElement("canvas");
  paintFigure(canvas, figure, Math.max(2, window.devicePixelRatio || 1));
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}
