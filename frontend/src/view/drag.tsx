/** Drag = zoom the steps. */

import { signal } from "@preact/signals";
import { toPixel, toStep } from "../model/scale";
import { range, scaleOf } from "./data";
import { update } from "./store";

/** The steps that are being dragged over; drawn in all linked panels. */
const dragged = signal<[number, number] | null>(null);
const THRESHOLD = 5;

/** Follows the pointer from a press; a press without a move stays a click. */
export function startDrag(event: PointerEvent, width: number): void {
  if (event.button !== 0) return;
  const target = event.currentTarget as HTMLElement;
  const left = target.getBoundingClientRect().left;
  const scale = scaleOf(width);
  const startX = event.clientX;
  const clamp = (x: number) => toStep(scale, Math.min(width, Math.max(0, x - left)));
  const move = (e: PointerEvent) => {
    if (dragged.peek() === null && Math.abs(e.clientX - startX) < THRESHOLD) return;
    const [a, b] = [clamp(startX), clamp(e.clientX)];
    dragged.value = a < b ? [a, b] : [b, a];
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
    if (swallow) return;
    const [from, to] = [Math.floor(found[0]), Math.ceil(found[1])];
    if (to - from >= 2) update({ zoom: [from, to] });
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

export function ZoomBox({ width }: { width: number }) {
  if (!dragged.value) return null;
  const scale = { from: range.value[0], to: range.value[1], width };
  const [a, b] = dragged.value.map((step) => toPixel(scale, step));
  return <div class="zoom-box" style={{ left: `${a}px`, width: `${b - a}px` }} />;
}
