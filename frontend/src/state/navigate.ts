/** What buttons and keys do. */

import type { ViewName } from "../data/urlstate";
import type { Violation } from "../server/types";
import { activeRun, layerIn, listedRuns, type Run, shownRuns } from "./runs";
import { closed, drill, focusRow, hover, page, pins, spoken, update, view } from "./store";

/** Opens a layer, in a run or in the one that is chosen. */
export function openLayer(layer: string, run: string | null): void {
  hover.value = null;
  drill({ view: "layer", layer, run: run ?? page.peek().run, channel: null, variable: null });
}

/** Opens the Network view at a run. */
export function openRun(run: string): void {
  hover.value = null;
  drill({ view: "network", run });
}

/**
 * Shows a view.
 *
 * @param layer that was chosen in the view before: the next one shows it, or is at its row.
 */
export function showView(next: ViewName, layer: string | null): void {
  hover.value = null;
  if (next === "network") focusRow.value = layer;
  const kept = next === "layer" ? {} : { channel: null, variable: null };
  drill({ view: next, ...(next === "layer" || next === "compare" ? { layer } : {}), ...kept });
}

/** Opens the list of violations of a run; V opens the one of the run in focus. */
export function listViolations(run: string | null): void {
  const own = run ?? (view.value === "layer" ? activeRun.value?.name : page.peek().run);
  const shown = shownRuns.value.find((other) => other.name === own) ?? shownRuns.value[0];
  hover.value = null;
  if (shown) update({ audit: shown.name });
}

/** Leads from the list to the channel, at the step at which it began. */
export function openListed(run: Run, entry: Violation): void {
  const drawn = layerIn(run, entry.layer)?.variable;
  const range = page.peek().zoom;
  const inside = range && entry.first_step >= range[0] && entry.first_step < range[1];
  drill({
    view: "layer",
    layer: entry.layer,
    run: run.name,
    variable: entry.variable === drawn ? null : entry.variable,
    channel: entry.channel,
    step: entry.first_step,
    zoom: inside ? range : null,
    audit: null,
  });
}

/** A list without a name, or with it where it isn't there. */
const toggled = (list: readonly string[], name: string): string[] =>
  list.includes(name) ? list.filter((other) => other !== name) : [...list, name];

export const toggleGroup = (id: string): void => update({ closed: toggled(closed.peek(), id) });
export const toggleRun = (name: string): void => update({ hidden: toggled(page.peek().hidden, name) });

/** Moves among layers, from the one that is shown. */
export function stepLayer(list: readonly { id: string }[], current: string | undefined, by: number): void {
  const place = list.findIndex((layer) => layer.id === current);
  const next = list[Math.min(list.length - 1, Math.max(0, place + by))];
  if (next && next.id !== current) update({ layer: next.id, channel: null, variable: null });
}

/** Moves among runs; after the last comes the first. */
export function stepRun(list: readonly { name: string }[], current: string | null | undefined, by: number): void {
  const place = list.findIndex((run) => run.name === current);
  const next = list[(Math.max(0, place) + by + list.length) % list.length];
  if (next) update({ run: next.name });
}

/** Ticks these runs, of those that the filter lists, and no other. */
export function showOnly(names: readonly string[]): void {
  const listed = listedRuns.value.map(({ name }) => name);
  const others = page.peek().hidden.filter((name) => !listed.includes(name));
  update({ hidden: [...others, ...listed.filter((name) => !names.includes(name))] });
}

const MOST_PINS = 6;

/** Pins or unpins a channel; a seventh pin unpins the oldest. */
export function togglePin(channel: number): void {
  const now = pins.peek();
  const pinned = now.includes(channel);
  const next = pinned ? now.filter((pin) => pin !== channel) : [...now, channel].slice(-MOST_PINS);
  const gone = now.find((pin) => !pinned && !next.includes(pin));
  update({ pins: next });
  spoken.value = `Channel ${channel} ${pinned ? "unpinned" : "pinned"}${gone === undefined ? "" : `, channel ${gone} unpinned (limit ${MOST_PINS})`}`;
}
