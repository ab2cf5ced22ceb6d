/** Overviews in more detail: of a long run the part that is zoomed into. */

import { computed, type ReadonlySignal, untracked } from "@preact/signals";
import { type Overview, readOverview } from "../../model/overview";
import { columnAt, lastAtOrBefore } from "../../model/series";
import { fetchOverview } from "../../wire/client";
import { overviewColumns, overviewOf, overviewSize, range, shownRuns, threshold } from "./data";
import { follower } from "./follow";
import { resource } from "./resource";

/** What detail is asked for: follows the zoom, as asking takes time that the first picture has to have. */
export const askedZoom = follower<readonly [number, number] | null>(null);

interface Part {
  first: number;
  last: number;
  overview: Overview;
}

/** The columns that the zoomed range lies in, and one on each side. */
function around({ starts, ends }: Overview, [from, to]: readonly [number, number]): [number, number] {
  const before = Math.max(0, lastAtOrBefore(starts, from) - 1);
  const after = Math.min(starts.length - 1, lastAtOrBefore(starts, to) + 1);
  return [starts[before], ends[after]];
}

/** Asked for only where columns hold several records. */
function askDetail(run: string): Part | null {
  const whole = overviewOf(run).value;
  const records = shownRuns.value.find((one) => one.name === run)?.records ?? 0;
  if (!askedZoom.value || !whole || whole.starts.length === 0 || records <= whole.starts.length) return null;
  const [first, last] = around(whole, askedZoom.value);
  const cols = overviewColumns.value;
  return resource<Part>(
    `detail ${run}`,
    `${threshold.value} ${cols} ${first} ${last}`,
    async (ask) => {
      const query = { run, cols, th: untracked(() => threshold.value), first, last };
      return { first, last, overview: readOverview(await fetchOverview(query, ask)) };
    },
    ({ overview }) => overviewSize(overview),
    true,
  ).value.value;
}

function finest(run: string): Overview | null {
  const whole = overviewOf(run).value;
  const part = askDetail(run);
  if (!part || !whole) return whole;
  const [first, last] = around(whole, range.value);
  const fits = part.first <= first && part.last >= last && part.overview.threshold === whole.threshold;
  return fits ? part.overview : whole;
}

const details = new Map<string, ReadonlySignal<Overview | null>>();

/** What is drawn of a run: in detail where it is zoomed into, as soon as that is there. */
export function finestOf(run: string): Overview | null {
  const found = details.get(run) ?? computed(() => finest(run));
  details.set(run, found);
  return found.value;
}

/** What numbers at a step are read from. */
export function overviewAt(run: string, step: number): Overview | null {
  const fine = finestOf(run);
  return fine && columnAt(fine, step) >= 0 ? fine : overviewOf(run).value;
}
