/** Keys of the whole page. */

import { watchKeys } from "../host";
import { toggleVersus } from "../state/baseline";
import { moveCursor, moveCursorTo } from "../state/cursor";
import { listViolations, showView } from "../state/navigate";
import { helpOpen, page, update } from "../state/store";
import { shownView } from "./parts";

/** Esc: a level up. */
function goUp(): void {
  if (page.peek().audit !== null) update({ audit: null });
  else if (keys()?.up() === false) showView("network", shownView()?.layer() ?? null);
}

const keys = () => shownView()?.keys;
const vertical = (by: number) => (keys()?.channel ?? keys()?.layer)?.(by);
const steps = () => shownView()?.steps() ?? new Float64Array(0);

const ACTIONS: Record<string, (event: KeyboardEvent) => unknown> = {
  ArrowLeft: (event) => moveCursor(steps(), event.shiftKey ? -10 : -1),
  ArrowRight: (event) => moveCursor(steps(), event.shiftKey ? 10 : 1),
  ArrowUp: () => vertical(-1),
  ArrowDown: () => vertical(1),
  Home: () => moveCursorTo(steps(), "first"),
  End: () => moveCursorTo(steps(), "last"),
  j: () => keys()?.layer(1),
  k: () => keys()?.layer(-1),
  "[": () => keys()?.run(-1),
  "]": () => keys()?.run(1),
  p: () => keys()?.pin?.(),
  d: () => toggleVersus(),
  "{": () => keys()?.other?.(-1),
  "}": () => keys()?.other?.(1),
  v: () => listViolations(null),
  Enter: () => keys()?.down(),
  Escape: () => goUp(),
  "0": () => update({ zoom: null, rowZoom: null }),
  "/": () => document.getElementById("layer-filter")?.focus(),
  "?": () => {
    helpOpen.value = true;
  },
};

const typing = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.closest("input:not([type=checkbox]), select, textarea, dialog") !== null;

/** A focused button or summary keeps its own Enter. */
const activates = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.closest("button, summary, a") !== null;

export function listenToKeys(): void {
  watchKeys((event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (event.key === "Enter" && activates(event.target)) return;
    if (event.target instanceof HTMLElement && event.target.closest(".table-scroll")) return;
    const action = ACTIONS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    event.preventDefault();
    action(event);
  });
}
