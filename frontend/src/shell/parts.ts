/** The views: each is loaded when it is first shown, the others once that is done. */

import { signal } from "@preact/signals";
import { VIEW_NAMES, type ViewName } from "../data/urlstate";
import { begin, finish } from "../state/frames";
import { view } from "../state/store";
import { styleViews } from "../style";
import { VIEWS } from "../views";
import type { View } from "../views/view";

const loaded = signal<ReadonlyMap<ViewName, View | Error>>(new Map());
const asked = new Set<ViewName>();

async function load(name: ViewName): Promise<void> {
  if (asked.has(name)) return;
  asked.add(name);
  begin();
  // A retry needs a reload: browsers keep the result of an import, even a failure.
  const lost = new Error(
    "Could not show the view: a part of the page didn't load. Check that TensorBoard is still running, then reload.",
  );
  const part = await VIEWS[name].load().catch(() => lost);
  loaded.value = new Map([...loaded.value, [name, part]]);
  const parts = VIEW_NAMES.map((other) => loaded.value.get(other));
  styleViews(parts.map((other) => (other && "css" in other ? other.css : "")).join("\n"));
  finish();
}

/** Loads all views: a change to one then costs nothing and needs no server. */
export const loadViews = (): void => VIEW_NAMES.forEach((name) => void load(name));

/** A view, or why there is none; undefined while it is being loaded. */
export function viewOf(name: ViewName): View | Error | undefined {
  const part = loaded.value.get(name);
  if (!part) queueMicrotask(() => void load(name));
  return part;
}

/** The view that is shown; null while it is being loaded. */
export function shownView(): View | null {
  const part = viewOf(view.value);
  return part && !(part instanceof Error) ? part : null;
}
