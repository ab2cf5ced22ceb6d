/** What buttons and keys do. */

import type { View } from "../../model/hash";
import { columnAt, violations } from "../../model/series";
import type { Violation } from "../../wire/types";
import { chosen, moveCompared, pairLayer, pairLayers } from "../compare/pair";
import { activePlace, activeProbed, layerOfPlace, listedPlaces, probedRuns } from "../function/places";
import { activeLayer, activeRun, layerIn, layers, listedLayers, overviewOf, type Run, rows, shownRuns } from "./data";
import { closed, drill, focusRow, hover, page, seekViolation, update, view } from "./store";

/** Opens a layer, in a run or in the one that is chosen. */
export function openLayer(layer: string, run: string | null): void {
  hover.value = null;
  drill({ view: "layer", layer, run: run ?? page.peek().run, channel: null, variable: null });
}

/** Shows a view. The Layer view takes the row that the keyboard is on, or the layer last seen; the Network view goes back to it. */
export function showView(next: View): void {
  hover.value = null;
  if (next === "network") focusRow.value = activeLayer.value?.id ?? null;
  const focused = view.value === "network" ? layers.value.find((layer) => layer.id === focusRow.value) : null;
  const chosenPlace = view.value === "function" ? layerOfPlace(activePlace.value) : null;
  const layer = chosenPlace ?? focused?.id ?? activeLayer.value?.id ?? null;
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

/** Leads to the first violated channel among the layers of a run. */
export function openViolation(run: string, among: readonly string[]): void {
  const overview = overviewOf(run).value;
  if (!overview) return;
  for (const layer of among) {
    const series = overview.series.get(layer);
    const found = series && violations(series);
    if (!series || !found) continue;
    const column = columnAt(series, found.firstStep);
    seekViolation.value = true;
    hover.value = null;
    drill({ view: "layer", layer, run, variable: null, channel: null, step: series.starts[column] });
    return;
  }
}

export function toggleGroup(id: string): void {
  const now = closed.peek();
  update({ closed: now.includes(id) ? now.filter((other) => other !== id) : [...now, id] });
}

/** J and K: the next layer, in the Network and in the Function view the next row. */
export function moveLayer(by: number): void {
  if (view.value === "function") {
    const list = listedPlaces.value;
    const at = list.findIndex((own) => own.id === activePlace.value?.id);
    const next = list[Math.min(list.length - 1, Math.max(0, at + by))];
    if (next) update({ place: next.id });
    return;
  }
  if (view.value === "layer" || view.value === "compare") {
    const compared = view.value === "compare";
    const listed = compared ? pairLayers.value : listedLayers.value;
    const list = listed.length > 0 ? listed : layers.value;
    const current = (compared ? pairLayer : activeLayer).value?.id;
    const at = list.findIndex((layer) => layer.id === current);
    const next = list[Math.min(list.length - 1, Math.max(0, at + by))];
    if (next && next.id !== current) update({ layer: next.id, channel: null, variable: null });
    return;
  }
  const walk = rows.value.filter((row) => row.kind !== "total");
  const at = walk.findIndex((row) => row.id === focusRow.value);
  const next = walk[Math.min(walk.length - 1, Math.max(0, at + by))];
  if (next) focusRow.value = next.id;
}

/** [ and ]: the next run; of the two compared ones the first. */
export function moveRun(by: number): void {
  if (view.value === "compare") {
    moveCompared(0, by);
    return;
  }
  const changes = view.value === "function";
  const list = changes ? probedRuns.value : shownRuns.value;
  const active = changes ? activeProbed.value?.run : view.value === "layer" ? activeRun.value : null;
  const current = active?.name ?? page.peek().run;
  const at = list.findIndex((run) => run.name === current);
  const next = list[(Math.max(0, at) + by + list.length) % list.length];
  if (next) update({ run: next.name });
}

/** Enter: a level down. */
export function goDown(): void {
  if (view.value === "compare" && pairLayer.value) openLayer(pairLayer.value.id, chosen.value?.[0].name ?? null);
  if (view.value === "function") {
    const layer = layerOfPlace(activePlace.value);
    if (layer !== null) openLayer(layer, activeProbed.value?.run.name ?? null);
  }
  if (view.value !== "network" || focusRow.value === null) return;
  const row = rows.value.find((other) => other.kind !== "total" && other.id === focusRow.value);
  if (row?.kind === "group") toggleGroup(row.id);
  else if (row?.kind === "layer") openLayer(row.id, null);
}

/** Esc: a level up. */
export function goUp(): void {
  if (page.peek().audit !== null) update({ audit: null });
  else if (view.value === "network") focusRow.value = null;
  else if (view.value === "function" && page.peek().place !== null) update({ place: null });
  else if (page.peek().channel !== null) update({ channel: null });
  else showView("network");
}

export function toggleRun(name: string): void {
  const now = page.peek().hidden;
  update({ hidden: now.includes(name) ? now.filter((other) => other !== name) : [...now, name] });
}
