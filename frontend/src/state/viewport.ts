/** What of the Network view is in sight: which columns, whose data is asked for first and drawn, and which rows. */

import { batch, computed, signal } from "@preact/signals";
import { AROUND, DOTS_WIDTH, MIN_COLUMN, NAME_WIDTH, runColumn, SIDEBAR } from "../data/rowbox";
import { follower } from "./frames";
import { shownRuns } from "./runs";
import { pageWidth } from "./store";

/** Of the view, once it is there. */
export const netWidth = signal<number | null>(null);
/** How far it is scrolled to the right, in pixels. */
export const scrolledBy = signal(0);

const width = computed(() => netWidth.value ?? pageWidth.value - SIDEBAR);

export const columnWidth = computed(() => runColumn(width.value, shownRuns.value.length));

/** Whether the dots stay at the right: next to the names, in a narrow window, they would hide every strip. */
export const dotsStay = computed(() => width.value - NAME_WIDTH - DOTS_WIDTH >= MIN_COLUMN);

/** After scrolling has begun, one more on each side is drawn next. */
const more = computed(() => (scrolledBy.value > 0 ? 1 : 0));
const first = computed(() => Math.max(0, Math.floor(scrolledBy.value / columnWidth.value) - more.value));
const end = computed(() => {
  const right = scrolledBy.value + Math.max(0, width.value - NAME_WIDTH - (dotsStay.value ? DOTS_WIDTH : 0));
  return Math.min(shownRuns.value.length, Math.ceil(right / columnWidth.value) + more.value);
});

/** The first column in sight and the one after the last. */
export const sight = computed<readonly [number, number]>(() => [first.value, end.value]);

const seenNames = computed(() => new Set(shownRuns.value.slice(...sight.value).map((run) => run.name)));

export const inSight = (run: string): boolean => seenNames.value.has(run);

/**
 * How far the Network view is scrolled down, in blocks: what is drawn reaches further, and is completed in later
 * frames.
 */
export const scrolled = signal(0);
/** The blocks that names, strips and dots are drawn around, each in its own frames. */
export const [nameBlock, stripBlock, dotBlock] = [follower(0), signal(0), signal(0)];
const drawnBlocks = [nameBlock, stripBlock, dotBlock];

/** Scrolls down to a block; what doesn't reach there is drawn at once. */
export function scrollDown(block: number): void {
  if (block === scrolled.peek()) return;
  batch(() => {
    scrolled.value = block;
    for (const drawn of drawnBlocks) if (Math.abs(drawn.peek() - block) > AROUND) drawn.value = block;
  });
}

/** The view is left: the next one begins at its top. */
export function scrollBack(): void {
  batch(() => {
    for (const block of [scrolled, ...drawnBlocks]) block.value = 0;
  });
}
