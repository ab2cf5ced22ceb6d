/** What follows the pointer and the zoom some frames later. */

import { computed, type Signal } from "@preact/signals";
import { askedZoom } from "./answers";
import { awaited } from "./at";
import { cursor, readStep } from "./cursor";
import { follow, follower } from "./following";
import { SOON } from "./frames";
import { runNamed, shownRuns } from "./runs";
import { type Hover, hover, view, zoom } from "./store";
import { nameBlock, scrolled } from "./viewport";

/** What the tooltip shows; it moves at once. */
export const tipped = follower<Hover | null>(null);
/**
 * Parts that are read or laid out again, each of which changes in its own frame: the side bar, and heads alternately.
 */
const PARTS = 5;
const parts = <T>(value: T): readonly Signal<T>[] => Array.from({ length: PARTS }, () => follower(value));

/** What numbers are read at: of the first part the side bar's, of the second those of other views. */
export const numberSteps = parts(0);
/** What axes are zoomed to. */
export const axisZooms = parts(zoom.peek());

/** The part of a head, by its place among the others. */
export const headPart = <T>(all: readonly Signal<T>[], place: number): Signal<T> => all[1 + (place % (PARTS - 1))];
/** What dots are drawn at: a marker for each run and row. */
export const dotStep = follower(0);
/** The cursor's step, as screen readers read it. */
export const spokenStep = follower(0);

/**
 * Asks for the figures of all runs at once, and returns whether they are loaded: rows without them would be drawn
 * twice.
 */
const figuresThere = computed(
  () => view.value !== "network" || shownRuns.value.filter((run) => awaited(run, readStep.value)).length === 0,
);

export function followAll(): void {
  follow(tipped, hover, { patience: SOON });
  for (const step of numberSteps) follow(step, readStep, { ready: figuresThere });
  for (const axis of axisZooms) follow(axis, zoom);
  follow(askedZoom, zoom);
  follow(dotStep, readStep, { ready: figuresThere });
  follow(spokenStep, cursor);
  follow(nameBlock, scrolled, { patience: SOON });
}

/** The run under the pointer, for what isn't read at once. */
export const pointedRun = computed(() => runNamed(tipped.value?.run ?? null));
