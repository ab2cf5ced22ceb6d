/** What of the Network view is in sight: which columns, whose data is asked for first and drawn, and which rows. */

import { batch, computed, signal } from "@preact/signals";
import { formatCount } from "../data/format";
import { type Labels, labelsOf } from "../data/labels";
import { type Row, treeRows } from "../data/layers";
import { AROUND, DOTS_WIDTH, LOWEST_LEAF, MIN_COLUMN, NAME_WIDTH, runColumn, SIDEBAR } from "../data/rowbox";
import { pageTextWidth } from "../draw/text";
import { follower } from "./following";
import { layers, shownRuns } from "./runs";
import { closed, layerFilter, pageWidth, sorted } from "./store";

/** Of the view, once it is there. */
export const netWidth = signal<number | null>(null);
export const netHeight = signal<number | null>(null);
/** How far it is scrolled to the right, in pixels. */
export const scrolledBy = signal(0);

const width = computed(() => netWidth.value ?? pageWidth.value - SIDEBAR);

/** Of the head and the row of all layers, about. */
const ABOVE = 190;
/** Rows that fit without scrolling. */
const capacity = computed(() => {
  const height = netHeight.value ?? window.innerHeight - SIDEBAR / 2;
  return Math.max(MIN_ROWS, Math.floor((height - ABOVE) / LOWEST_LEAF));
});
/** As many are shown in the lowest window. */
const MIN_ROWS = 12;

/** The rows in forward order, as many groups open as there is room for. */
export const tree = computed<Row[]>(() =>
  treeRows(layers.value, new Set(closed.value), layerFilter.value.pattern, sorted.value, capacity.value),
);

const LETTERS = 13;
const widthOf = (text: string) => pageTextWidth(text, LETTERS);

/** What is left of a row's name for other things: its place in the tree, and its channels. */
const besides = ({ depth, channels }: Row): number => 64 + 14 * depth + widthOf(formatCount(channels));

/** What rows are called in a room of so many pixels. */
const rowLabels = computed<Labels>(() => labelsOf([...new Set(tree.value.map(({ label }) => label))], widthOf));

/** Names take as much as they need, but not the room of the pictures. */
const [WIDEST_NAMES, MOST_OF_NAMES] = [420, 0.3];
export const nameWidth = computed(() => {
  const needed = Math.max(0, ...tree.value.map((row) => widthOf(row.label) + besides(row)));
  const most = Math.min(WIDEST_NAMES, MOST_OF_NAMES * width.value);
  return Math.ceil(Math.max(NAME_WIDTH, Math.min(needed, most)));
});

/** The name of a row as long as there is room for. */
export const rowLabel = (row: Row): string =>
  rowLabels.value(nameWidth.value - besides(row)).get(row.label) ?? row.label;

export const columnWidth = computed(() => runColumn(width.value, shownRuns.value.length, nameWidth.value));

/** Whether the dots stay at the right: next to the names, in a narrow window, they would hide every strip. */
export const dotsStay = computed(() => width.value - nameWidth.value - DOTS_WIDTH >= MIN_COLUMN);

/** After scrolling has begun, one more on each side is drawn next. */
const more = computed(() => (scrolledBy.value > 0 ? 1 : 0));
const first = computed(() => Math.max(0, Math.floor(scrolledBy.value / columnWidth.value) - more.value));
const end = computed(() => {
  const right = scrolledBy.value + Math.max(0, width.value - nameWidth.value - (dotsStay.value ? DOTS_WIDTH : 0));
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
