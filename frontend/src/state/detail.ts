/** What strips are drawn from: of a long run the part that is zoomed into in more detail, as soon as that is there. */

import { computed, type ReadonlySignal } from "@preact/signals";
import { lastAtOrBefore } from "../data/steps";
import { askOverview, type Drawn, overviewColumns, overviewOf } from "./answers";

export type { Drawn };

import { follower } from "./follow";
import { range, runNamed } from "./runs";

/** What detail is asked for: follows the zoom, as asking takes time that the first picture has to have. */
export const askedZoom = follower<readonly [number, number] | null>(null);

/** The steps of the records that a range lies in, and one more on each side. */
function around(steps: Float64Array, [from, to]: readonly [number, number]): { first: number; last: number } {
  const first = Math.max(0, lastAtOrBefore(steps, from) - 1);
  const last = Math.min(steps.length - 1, lastAtOrBefore(steps, to) + 1);
  return { first: steps[first], last: steps[last] };
}

function finest(name: string): Drawn | null {
  const whole = overviewOf(name).value;
  const steps = runNamed(name)?.recordSteps;
  // Where each column is a record already, there is no more detail.
  if (!askedZoom.value || !whole || !steps || steps.length <= overviewColumns.value) return whole?.drawn ?? null;
  const asked = around(steps, askedZoom.value);
  const part = askOverview(name, asked).value;
  if (!part || part.header.threshold !== whole.header.threshold) return whole.drawn;
  const sighted = around(steps, range.value);
  const fits = part.first <= sighted.first && part.last >= sighted.last;
  return fits ? part.drawn : whole.drawn;
}

const details = new Map<string, ReadonlySignal<Drawn | null>>();

export function drawnOf(run: string): Drawn | null {
  const signal = details.get(run) ?? computed(() => finest(run));
  details.set(run, signal);
  return signal.value;
}
