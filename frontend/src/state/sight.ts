/** Which columns of the Network view are in sight: theirs is asked for first, and theirs is drawn. */

import { computed, signal } from "@preact/signals";
import { DOTS_WIDTH, NAME_WIDTH, runColumn, SIDEBAR } from "../data/rowbox";
import { shownRuns } from "./runs";
import { pageWidth } from "./store";

/** Of the view, once it is there. */
export const netWidth = signal<number | null>(null);
/** How far it is scrolled to the right, in pixels. */
export const scrolledBy = signal(0);

const width = computed(() => netWidth.value ?? pageWidth.value - SIDEBAR);

export const columnWidth = computed(() => runColumn(width.value, shownRuns.value.length));

/** Who has begun to scroll sees one more on each side next. */
const more = computed(() => (scrolledBy.value > 0 ? 1 : 0));
const first = computed(() => Math.max(0, Math.floor(scrolledBy.value / columnWidth.value) - more.value));
const end = computed(() => {
  const right = scrolledBy.value + Math.max(0, width.value - NAME_WIDTH - DOTS_WIDTH);
  return Math.min(shownRuns.value.length, Math.ceil(right / columnWidth.value) + more.value);
});

/** The first column in sight and the one after the last. */
export const sight = computed<readonly [number, number]>(() => [first.value, end.value]);

const seenNames = computed(() => new Set(shownRuns.value.slice(...sight.value).map((run) => run.name)));

export const inSight = (run: string): boolean => seenNames.value.has(run);
