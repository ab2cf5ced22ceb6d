/** Keys of the whole page. */

import { watchKeys } from "../host";
import { toggleVersus } from "../state/baseline";
import { moveCursor, moveCursorTo } from "../state/cursor";
import { listViolations, showView } from "../state/navigate";
import { helpOpen, hover, page, update } from "../state/store";
import { shownView } from "./parts";

type Action = (event: KeyboardEvent) => unknown;

/** Esc: a level up. */
function goUp(): void {
  if (page.peek().audit !== null) update({ audit: null });
  else if (keys()?.up() === false) showView("network", shownView()?.layer() ?? null);
}

const keys = () => shownView()?.keys;
const steps = () => shownView()?.steps() ?? new Float64Array(0);
const along = (by: number) => (event: KeyboardEvent) => moveCursor(steps(), event.shiftKey ? 10 * by : by);
const vertical = (by: number) => () => (keys()?.channel ?? keys()?.layer)?.(by);

/** As they are listed, what they do in words, and what each does. */
export const KEYS: [string[], string, Record<string, Action>][] = [
  [["←", "→"], "previous record, next record", { ArrowLeft: along(-1), ArrowRight: along(1) }],
  [["Shift ←", "Shift →"], "ten records", {}],
  [["Home"], "first record", { Home: () => moveCursorTo(steps(), "first") }],
  [["End"], "jump to latest and follow", { End: () => moveCursorTo(steps(), "last") }],
  [["J", "K"], "layer below, layer above", { j: () => keys()?.layer(1), k: () => keys()?.layer(-1) }],
  [["[", "]"], "previous run, next run", { "[": () => keys()?.run(-1), "]": () => keys()?.run(1) }],
  [["{", "}"], "the other run (Compare view)", { "{": () => keys()?.other?.(-1), "}": () => keys()?.other?.(1) }],
  [["↑", "↓"], "channel above, channel below (Layer view)", { ArrowUp: vertical(-1), ArrowDown: vertical(1) }],
  [["P"], "pin or unpin the channel (Layer view)", { p: () => keys()?.pin?.() }],
  [["D"], "difference from the baseline, or values; in Compare: the baseline as B", { d: toggleVersus }],
  [["Enter"], "open the layer", { Enter: () => keys()?.down() }],
  [["Esc"], "close the list or the channel, then go back to the network", { Escape: goUp }],
  [["V"], "list the violations of the run", { v: () => listViolations(null) }],
  [["/"], "filter the layers", { "/": () => document.getElementById("layer-filter")?.focus() }],
  [["0"], "show all steps and rows again", { "0": () => update({ zoom: null, rowZoom: null }) }],
  [["?"], "show these keys", { "?": () => (helpOpen.value = true) }],
];
const ACTIONS: Record<string, Action> = Object.assign({}, ...KEYS.map(([, , actions]) => actions));

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
    // The last input wins: a pointer that rests is read again once it moves.
    hover.value = null;
    action(event);
  });
}
