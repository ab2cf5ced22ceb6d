/** Keys of the whole page. */

import { watchKeys } from "../../host";
import { moveCompared } from "../compare/pair";
import { toggleVersus } from "../frame/versus";
import { togglePin } from "../layer/pins";
import { allRows, drawnRows } from "../layer/roworder";
import { goDown, goUp, listViolations, moveLayer, moveRun } from "./actions";
import { moveCursor, moveCursorTo } from "./cursor";
import { activeLayer, activeRun, cellsOf } from "./data";
import { channel, helpOpen, update, view } from "./store";

/** The channels in drawing order. */
function drawn(): Uint32Array | null {
  const run = activeRun.value;
  const layer = activeLayer.value;
  const cells = run && layer ? cellsOf(run.name, layer.id).value : null;
  return run && layer && cells && cells.channels > 0 ? drawnRows(allRows(run, layer.id, cells)) : null;
}

/** ↑ and ↓: the next channel. */
function moveChannel(by: number): void {
  const rows = drawn();
  if (!rows) return;
  const at = channel.value === null ? -1 : rows.indexOf(channel.value);
  update({ channel: rows[Math.min(rows.length - 1, Math.max(0, at + by))] });
}

/** P: the channel that the inspector shows. */
function pinChannel(): void {
  const rows = view.value === "layer" ? drawn() : null;
  if (rows) togglePin(channel.value ?? rows[0]);
}

const ACTIONS: Record<string, (event: KeyboardEvent) => unknown> = {
  ArrowLeft: (event) => moveCursor(event.shiftKey ? -10 : -1),
  ArrowRight: (event) => moveCursor(event.shiftKey ? 10 : 1),
  ArrowUp: () => (view.value === "layer" ? moveChannel(-1) : moveLayer(-1)),
  ArrowDown: () => (view.value === "layer" ? moveChannel(1) : moveLayer(1)),
  Home: () => moveCursorTo("first"),
  End: () => moveCursorTo("last"),
  j: () => moveLayer(1),
  k: () => moveLayer(-1),
  "[": () => moveRun(-1),
  "]": () => moveRun(1),
  p: () => pinChannel(),
  d: () => toggleVersus(),
  "{": () => view.value === "compare" && moveCompared(1, -1),
  "}": () => view.value === "compare" && moveCompared(1, 1),
  v: () => listViolations(null),
  Enter: () => goDown(),
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
