/** The frame of a picture over steps: what the pointer reads, the crosshair, and the box of the zoom. */

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { toPixel, toStep } from "../data/scale";
import type { PageState } from "../data/urlstate";
import { readStep, setStep } from "../state/cursor";
import { afterFrames } from "../state/frames";
import { scaleOf } from "../state/runs";
import { type Hover, hover, update } from "../state/store";
import { movedTo } from "./widgets";

/** Where it is in a picture; null where it is out of it. */
function crosshairX(width: number): number | null {
  const x = toPixel(scaleOf(width), readStep.value);
  return x >= 0 && x <= width ? x : null;
}

/** The line at the step under the pointer, or at the cursor; its height is by default that of its container. */
export function Crosshair({ width, height }: { width: number; height?: number }) {
  const x = crosshairX(width);
  const style = height === undefined ? {} : { height: `${height}px` };
  return x === null ? null : <i ref={movedTo(x, 0)} class="crosshair" style={style} />;
}

export interface RowProps {
  /** Of each picture. */
  width: number;
  /** From the begin of one to that of the next. */
  pitch: number;
  count: number;
  left?: number;
  /** By default at the bottom. */
  top?: number;
  height: number;
}

/** The same line in a row of pictures that are equally wide: one layer for all of them is moved. */
export function Crosshairs({ width, pitch, count, left = 0, top, height }: RowProps) {
  const x = crosshairX(width);
  if (x === null || count === 0) return null;
  const style = {
    left: `${left}px`,
    [top === undefined ? "bottom" : "top"]: `${top ?? 0}px`,
    width: `${(count - 1) * pitch + 1}px`,
    height: `${height}px`,
    backgroundSize: `${pitch}px 2px`,
  };
  return <i ref={movedTo(x, 0)} class="crosshairs" style={style} />;
}

/** Rows of a heatmap on the page: their position in the panel, and their places in the order. */
export interface RowBand {
  top: number;
  height: number;
  from: number;
  count: number;
}

type Point = { x: number; y: number };

interface Dragged {
  /** Steps, drawn in all linked panels; null where only rows are dragged over. */
  steps: [number, number] | null;
  rows: [number, number] | null;
}

const dragged = signal<Dragged | null>(null);
const THRESHOLD = 5;
/** A drag that is this much shorter in one direction, even relative to the other, zooms only the other. */
const STRAY = 16;
const STRAY_SHARE = 0.15;

const strays = (own: number, other: number): boolean => own < Math.max(STRAY, STRAY_SHARE * other);

/** What a drag from one place of a panel to another selects. */
function boxOf(from: Point, to: Point, width: number, band: RowBand | null): Dragged {
  const scale = scaleOf(width);
  const sorted = (a: number, b: number): [number, number] => (a < b ? [a, b] : [b, a]);
  const [wide, tall] = [Math.abs(to.x - from.x), Math.abs(to.y - from.y)];
  const rowed = band !== null && from.y >= band.top && !strays(tall, wide);
  const stepAt = (x: number) => toStep(scale, Math.min(width, Math.max(0, x)));
  const steps = rowed && strays(wide, tall) ? null : sorted(stepAt(from.x), stepAt(to.x));
  if (!rowed) return { steps, rows: null };
  const rowAt = (y: number) => (Math.min(band.height, Math.max(0, y - band.top)) / band.height) * band.count;
  const [first, last] = sorted(rowAt(from.y), rowAt(to.y));
  return { steps, rows: [band.from + Math.floor(first), band.from + Math.ceil(last)] };
}

function zoomTo({ steps, rows }: Dragged): void {
  const patch: Partial<PageState> = {};
  if (steps) {
    const [from, to] = [Math.floor(steps[0]), Math.ceil(steps[1])];
    if (to - from >= 2) patch.zoom = [from, to];
  }
  if (rows && rows[1] > rows[0]) patch.rowZoom = rows;
  if (patch.zoom || patch.rowZoom) update(patch);
}

/** Follows the pointer from a press; a press without a move stays a click. */
export function startDrag(event: PointerEvent, width: number, band: RowBand | null = null): void {
  if (event.button !== 0) return;
  const plot = event.currentTarget as HTMLElement;
  const { left, top } = plot.getBoundingClientRect();
  const place = (e: MouseEvent) => ({ x: e.clientX - left, y: e.clientY - top });
  const start = place(event);
  const move = (e: PointerEvent) => {
    const now = place(e);
    const far = Math.max(Math.abs(now.x - start.x), band ? Math.abs(now.y - start.y) : 0);
    if (dragged.peek() === null) {
      if (far < THRESHOLD) return;
      // The drag continues outside the frame. Not captured on press: buttons in the plot would get no click.
      plot.setPointerCapture(event.pointerId);
    }
    dragged.value = boxOf(start, now, width, band);
  };
  const ended = new AbortController();
  const stop = (zooms: boolean) => {
    const box = dragged.peek();
    ended.abort();
    dragged.value = null;
    if (!box) return;
    // The click that follows a drag must not set the step.
    window.addEventListener("click", (e) => e.stopPropagation(), { capture: true, once: true });
    setTimeout(() => window.dispatchEvent(new Event("click")), 0);
    // In the frame after: in this one the browser looks for what is under the pointer twice.
    if (zooms) afterFrames(2, () => zoomTo(box));
  };
  const onKey = (e: KeyboardEvent) => {
    if (e.key !== "Escape") return;
    e.stopPropagation();
    stop(false);
  };
  window.addEventListener("pointermove", move, { signal: ended.signal });
  window.addEventListener("pointerup", () => stop(true), { signal: ended.signal });
  window.addEventListener("pointercancel", () => stop(false), { signal: ended.signal });
  window.addEventListener("keydown", onKey, { capture: true, signal: ended.signal });
}

interface BoxProps extends Omit<RowProps, "height"> {
  /** By default that of its container. */
  height?: number;
  band?: RowBand;
}

/** The box is always there: adding or removing a layer makes Chromium compose all layers again. */
const NOWHERE = { "--from": "0px", "--to": "0px", opacity: 0 };

/** What is dragged over, in a row of pictures that are equally wide. */
export function ZoomBoxes({ width, pitch, count, left = 0, top = 0, height, band }: BoxProps) {
  const { steps = null, rows = null } = dragged.value ?? {};
  if (count === 0) return null;
  const shown = steps || (band && rows);
  const [from, to] = steps?.map((step) => toPixel(scaleOf(width), step)) ?? [0, width];
  const rowY = (row: number) => (band ? band.top + ((row - band.from) / band.count) * band.height : 0);
  const [upper, lower] = (band && rows)?.map(rowY) ?? [];
  const style = {
    left: `${left}px`,
    top: `${top}px`,
    width: `${(count - 1) * pitch + width}px`,
    height: height === undefined ? "100%" : `${height}px`,
    backgroundPosition: `0 ${upper ?? 0}px`,
    backgroundSize: `${pitch}px ${lower === undefined ? "100%" : `${lower - upper}px`}`,
    ...(shown ? { "--from": `${from}px`, "--to": `${to}px` } : NOWHERE),
  };
  return <div class="zoom-box" style={style} />;
}

/** What is under the pointer, and what a click and a double click do with it, besides setting the step. */
export interface Target extends Partial<Omit<Hover, "x" | "y">> {
  step: number;
  /** Whether only a click reads it. */
  silent?: boolean;
  pick?: () => void;
  open?: () => void;
}

/** Shows what is under the pointer. Its lines and its step are read when they are shown: they may be on their way. */
export function pointAt({ clientX: x, clientY: y }: MouseEvent, target: Target | null): void {
  const { run = null, row = null, channel = null } = target ?? {};
  hover.value = target && Object.assign(target, { run, row, channel, x, y });
}

export function pointNowhere(): void {
  hover.value = null;
}

/** What is at a step of the axis and at a height of the picture. */
type Read = (step: number, y: number) => Target;

/** Handlers that read what is under the pointer, and set the step on a click. */
export function stepPointer(width: number, read: Read = (step) => ({ step: Math.floor(step) })) {
  const under = (event: MouseEvent): Target => {
    const { left, top } = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const x = Math.min(width - 0.01, Math.max(0, event.clientX - left));
    return read(toStep(scaleOf(width), x), event.clientY - top);
  };
  return {
    onPointerMove(event: PointerEvent) {
      const target = under(event);
      pointAt(event, target.silent ? null : target);
    },
    onPointerLeave: pointNowhere,
    onClick: (event: MouseEvent) => {
      if ((event.target as Element).closest("button")) return;
      const { step, pick } = under(event);
      setStep(step);
      pick?.();
    },
    onDblClick: (event: MouseEvent) => under(event).open?.(),
  };
}

interface PlotProps {
  class: string;
  width: number;
  style?: Record<string, string>;
  read?: Read;
  /** The rows that a drag zooms, too. */
  band?: RowBand;
  /** Above the crosshair. */
  over?: ComponentChildren;
  children: ComponentChildren;
}

export function Plot({ width, style, read, band, over, children, ...rest }: PlotProps) {
  return (
    <div
      {...rest}
      style={{ width: `${width}px`, ...style }}
      {...stepPointer(width, read)}
      onPointerDown={(event) => startDrag(event, width, band)}
    >
      {children}
      <Crosshair width={width} />
      {over}
      <ZoomBoxes width={width} pitch={width} count={1} band={band} />
    </div>
  );
}
