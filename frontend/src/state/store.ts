/** The page's state: what lives in the URL, what is passing (hover), and the messages of the host. */

import { batch, computed, effect, type ReadonlySignal, signal } from "@preact/signals";
import { applyFilter, type Filter, NO_FILTER } from "../data/names";
import { DEFAULTS, fromPairs, type PageState, patched, toPairs } from "../data/urlstate";
import { DARK, LIGHT } from "../draw/theme";
import { hashUrl, readHash, remember, remembered, watchHash, writeHash } from "../host";

export const page = signal<PageState>(fromPairs(readHash()));

/** Each field as a signal: a component renders only when that field changes. */
const fields = Object.fromEntries(
  Object.keys(DEFAULTS).map((key) => [key, computed(() => page.value[key as keyof PageState])]),
) as { [K in keyof PageState]: ReadonlySignal<PageState[K]> };

export const { view, layer: layerId, run: runName, variable: variableId, channel, step, place, pins, unit } = fields;
export const { zoom, rowZoom, order, rowsOf, mode, measure, change, maskKind, sorted, closed, hidden, audit } = fields;
export const { baseline, versus, other } = fields;

const SCALAR = "pastnet.scalar";
const chosenScalar = signal(remembered(SCALAR));
/** The scalar that is shown of each run; null is the one that looks most like its loss. */
export const scalar = computed(() => fields.scalar.value ?? chosenScalar.value);

/** Chooses a scalar, for this and later visits. */
export function chooseScalar(name: string | null): void {
  remember(SCALAR, name);
  chosenScalar.value = name;
  update({ scalar: name });
}

/** A field that is a pattern: the last valid one applies. */
function pattern(text: ReadonlySignal<string>): ReadonlySignal<Filter> {
  let last: Filter = NO_FILTER;
  return computed(() => (last = applyFilter(text.value, last)));
}
export const [runFilter, layerFilter] = [pattern(fields.runFilter), pattern(fields.layerFilter)];
export const grouping = pattern(fields.grouping);

let urlTimer: ReturnType<typeof setTimeout> | undefined;

/** Writes the state to the current history entry if that is still to be done. */
function flushUrl(): void {
  if (urlTimer === undefined) return;
  clearTimeout(urlTimer);
  urlTimer = undefined;
  writeHash(toPairs(page.peek()), false);
}

/** For tests: the address that the state has, or will have in a moment. */
effect(() => {
  const url = hashUrl(toPairs(page.value));
  document.documentElement.dataset.pastnetUrl = url.slice(url.indexOf("#"));
});

/** Changes the state and replaces the URL soon: browsers limit how often it may be written (Safari: 100 in 30 s). */
export function update(patch: Partial<PageState>): void {
  page.value = patched(page.peek(), patch);
  clearTimeout(urlTimer);
  urlTimer = setTimeout(flushUrl, 150);
}

/** A drill-down: the current entry keeps the state before the patch, a new one gets the state after it. */
export function drill(patch: Partial<PageState>): void {
  flushUrl();
  page.value = patched(page.peek(), patch);
  writeHash(toPairs(page.peek()), true);
}

export function followUrl(): void {
  watchHash(() => {
    const next = fromPairs(readHash());
    if (JSON.stringify(next) !== JSON.stringify(page.peek())) {
      clearTimeout(urlTimer);
      urlTimer = undefined;
      batch(() => {
        page.value = next;
        hover.value = null;
      });
    }
  });
}

export const pageWidth = signal(window.innerWidth);
window.addEventListener("resize", () => {
  pageWidth.value = window.innerWidth;
});

export const dark = signal(false);
export const theme = computed(() => (dark.value ? DARK : LIGHT));
export const hostRuns = signal<string[]>([]);

export interface Hover {
  step: number;
  /** What is under the pointer; null where only the step is known. */
  run: string | null;
  /** Id of a row of the tree ("" is the total), in the Network view. */
  row: string | null;
  channel: number | null;
  x: number;
  y: number;
  /** Lines of the tooltip, its title first, if run and place don't determine them. */
  tip?: readonly string[];
}

export const hover = signal<Hover | null>(null);
/** What the live region reads out. */
export const spoken = signal("");
export const helpOpen = signal(false);
/** Whether a narrow page shows the side bar. */
export const sideOpen = signal(false);
/** Panels that are shown as a table, by name. */
export const tables = signal<ReadonlySet<string>>(new Set());
/** The row of the tree that the keyboard is on, in the Network view; it becomes the layer on drilling. */
export const focusRow = signal<string | null>(null);

export function toggleTable(name: string): void {
  const next = new Set(tables.value);
  if (!next.delete(name)) next.add(name);
  tables.value = next;
}

/** The place of the finding that the keyboard is on, -1 for none. */
export const focusFinding = signal(-1);
