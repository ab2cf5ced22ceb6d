/** What follows the pointer and the zoom some frames later. */

import { signal } from "@preact/signals";
import { cursor, readStep } from "./cursor";
import { askedZoom } from "./detail";
import { follow } from "./follow";
import { SOON } from "./later";
import { type Hover, hover, zoom } from "./store";

/** What the tooltip tells of; it moves at once. */
export const tipped = signal<Hover | null>(null);
/** What numbers are read at, in two halves that change in a frame each: every second head and the side bar, and the rest. */
export const numberSteps = [signal(0), signal(0)] as const;
/** What axes are zoomed to, by halves likewise. */
export const axisZooms = [signal(zoom.peek()), signal(zoom.peek())] as const;
/** What dots are drawn at: a marker for each run and row. */
export const dotStep = signal(0);
/** The cursor's, in what screen readers are told. */
export const spokenStep = signal(0);

export function followAll(): void {
  follow(tipped, hover, SOON);
  for (const step of numberSteps) follow(step, readStep);
  for (const axis of axisZooms) follow(axis, zoom);
  follow(askedZoom, zoom);
  follow(dotStep, readStep);
  follow(spokenStep, cursor);
}
