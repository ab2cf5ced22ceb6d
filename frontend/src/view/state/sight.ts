/** Which columns of the Network view are in sight: theirs is asked for first, and theirs is drawn. */

import { computed, signal } from "@preact/signals";
import { DOTS_WIDTH, NAME_WIDTH, runColumn, SIDEBAR } from "../network/geometry";
import { shownRuns } from "./data";
import { pageWidth } from "./store";

/** Of the view, once it is there. */
export const netWidth = signal<number | null>(null);
/** How far it is scrolled to the right, in whole columns. */
export const columnsLeft = signal(0);

const width = computed(() => netWidth.value ?? pageWidth.value - SIDEBAR);

export const columnWidth = computed(() => runColumn(width.value, shownRuns.value.length));

/** The first column in sight and the one after the last; one more on each side, as scrolling shows them next. */
export const sight = computed<readonly [number, number]>(() => {
  const seen = Math.ceil((width.value - NAME_WIDTH - DOTS_WIDTH) / columnWidth.value) + 1;
  return [Math.max(0, columnsLeft.value - 1), Math.min(shownRuns.value.length, columnsLeft.value + seen + 1)];
});

const seenNames = computed(() => new Set(shownRuns.value.slice(...sight.value).map((run) => run.name)));

export const inSight = (run: string): boolean => seenNames.value.has(run);
