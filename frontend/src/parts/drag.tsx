/** Drag = zoom to a box: the steps, and over a heatmap also its rows. */

import { signal } from "@preact/signals";
import { toPixel, toStep } from "../data/scale";
import type { PageState } from "../data/urlstate";
import { afterFrames } from "../state/frames";
import { scaleOf } from "../state/runs";
import { update } from "../state/store";
import type { RowProps } from "./crosshair";

/** Rows of a heatmap on the page: where they lie in the panel, and which ones they are in their order. */
export interface RowBand {
  top: number;
  height: number;
  from: number;
  count: number;
}

interface Dragged {
  /** Steps, drawn in all linked panels; null where only rows are dragged over. */
  steps: [number, number] | null;
  rows: [number, number] | null;
}

const dragged = signal<Dragged | null>(null);
const THRESHOLD = 5;
/** A drag that goes less far in one direction, also in share of the other, zooms the other alone. */
const STRAY = 16;
const STRAY_SHARE = 0.15;

const strays = (own: number, other: number): boolean => own < Math.max(STRAY, STRAY_SHARE * other);

/** What a drag from one place of a panel to another selects. */
export function boxOf(
  from: { x: number; y: number },
  to: { x: number; y: number },
  width: number,
  band: RowBand | null,
): Dragged {
  const scale = scaleOf(width);
  const sorted = (a: number, b: number): [number, number] => (a < b ? [a, b] : [b, a]);
  const [wide, tall] = [Math.abs(to.x - from.x), Math.abs(to.y - from.y)];
  const rowed = band !== null && from.y >= band.top && !strays(tall, wide);
  const clampX = (x: number) => toStep(scale, Math.min(width, Math.max(0, x)));
  const rowAt = (y: number) =>
    band ? (Math.min(band.height, Math.max(0, y - band.top)) / band.height) * band.count : 0;
  const [first, last] = sorted(rowAt(from.y), rowAt(to.y));
  return {
    steps: rowed && strays(wide, tall) ? null : sorted(clampX(from.x), clampX(to.x)),
    rows: rowed && band ? [band.from + Math.floor(first), band.from + Math.ceil(last)] : null,
  };
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
  const box = plot.getBoundingClientRect();
  const place = (e: MouseEvent) => ({ x: e.clientX - box.left, y: e.clientY - box.top });
  const start = place(event);
  const move = (e: PointerEvent) => {
    const now = place(e);
    const far = Math.max(Math.abs(now.x - start.x), band ? Math.abs(now.y - start.y) : 0);
    if (dragged.peek() === null) {
      if (far < THRESHOLD) return;
      // It goes on outside of the frame. Not from the press on: buttons in the plot would get no click.
      plot.setPointerCapture(event.pointerId);
    }
    dragged.value = boxOf(start, now, width, band);
  };
  const stop = (swallow: boolean) => {
    const found = dragged.peek();
    window.removeEventListener("pointermove", move);
    window.removeEventListener("pointerup", up);
    window.removeEventListener("keydown", onEscape, true);
    dragged.value = null;
    if (!found) return;
    // The click that follows a drag must not set the step.
    window.addEventListener("click", (e) => e.stopPropagation(), { capture: true, once: true });
    setTimeout(() => window.dispatchEvent(new Event("click")), 0);
    // In the frame after: in this one the browser looks for what is under the pointer twice.
    if (!swallow) afterFrames(2, () => zoomTo(found));
  };
  const up = () => stop(false);
  const onEscape = (e: KeyboardEvent) => {
    if (e.key !== "Escape") return;
    e.stopPropagation();
    stop(true);
  };
  window.addEventListener("pointermove", move);
  window.addEventListener("pointerup", up);
  window.addEventListener("keydown", onEscape, true);
}

interface BoxProps extends Omit<RowProps, "height"> {
  /** By default that of what it lies in. */
  height?: number;
  band?: RowBand;
}

/** The box is always there, as all layers are composed anew where one comes or goes. */
const NOWHERE = { "--from": "0px", "--to": "0px", opacity: 0 };

/** What is dragged over, in a row of pictures that are equally wide. */
export function ZoomBoxes({ width, pitch, count, left = 0, top = 0, height, band }: BoxProps) {
  const found = dragged.value;
  if (count === 0) return null;
  const shown = found && (found.steps || band);
  const [from, to] = found?.steps?.map((step) => toPixel(scaleOf(width), step)) ?? [0, width];
  const rowY = (row: number) => (band ? band.top + ((row - band.from) / band.count) * band.height : 0);
  const [upper, lower] = (band && found?.rows)?.map(rowY) ?? [];
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

/** The same in one picture. */
export const ZoomBox = ({ width, band }: { width: number; band?: RowBand }) => (
  <ZoomBoxes width={width} pitch={width} count={1} band={band} />
);
