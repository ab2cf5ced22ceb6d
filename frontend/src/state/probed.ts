/** What the Function view shows: the runs that have a probe, its places in forward order, what is chosen of them. */

import { computed } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { type ChangeAxis, changeAxis, type FunctionSeries, measuresAt, placeKey, readFunction } from "../data/function";
import { mergeLayers } from "../data/layers";
import { passes } from "../data/names";
import { type Change, DEFAULTS } from "../data/urlstate";
import { fetchFunction } from "../server/fetch";
import type { FunctionPlace } from "../server/types";
import { type Resource, resource } from "./resource";
import { layers, type Run, shownRuns } from "./runs";
import { change, layerFilter, place, runName } from "./store";

export function functionOf(run: string): Resource<FunctionSeries> {
  return resource(
    `function ${run}`,
    "",
    async (ask) => readFunction(await fetchFunction({ run }, ask)),
    (series) => series.values.byteLength,
  ).value;
}

export const probedRuns = computed(() => shownRuns.value.filter((run) => run.probe));
export const unprobedRuns = computed(() => shownRuns.value.filter((run) => !run.probe));

export interface Probed {
  run: Run;
  series: FunctionSeries;
}

/** The runs whose records are there. */
export const probed = computed<Probed[]>(() =>
  probedRuns.value.flatMap((run) => {
    const series = functionOf(run.name).value;
    return series && series.steps.length > 0 ? [{ run, series }] : [];
  }),
);

export interface Spot extends FunctionPlace {
  /** Its key: a layer and an output may have one name. */
  id: string;
}

/** All places: layers in forward order, then the outputs. */
export const places = computed<Spot[]>(() => {
  const lists = probed.value.map(({ series }) => series.header.places.map((own) => ({ ...own, id: placeKey(own) })));
  const byId = new Map(lists.flat().map((own) => [own.id, own]));
  const forward = layers.value.flatMap((layer) => byId.get(placeKey({ kind: "layer", name: layer.id })) ?? []);
  const merged = mergeLayers([forward, ...lists].map((list) => ({ layers: list })));
  return [...merged.filter((own) => own.kind === "layer"), ...merged.filter((own) => own.kind !== "layer")];
});

/** Those whose rows are shown: outputs pass any filter for layers. */
export const listedPlaces = computed(() =>
  places.value.filter((own) => own.kind !== "layer" || passes(layerFilter.value, own.name)),
);

/** The chosen place, at first the last output. */
export const activePlace = computed<Spot | null>(
  () => places.value.find((own) => own.id === place.value) ?? places.value[places.value.length - 1] ?? null,
);

/** The run whose layers are drawn: the chosen one, or the first that has records. */
export const activeProbed = computed<Probed | null>(
  () => probed.value.find(({ run }) => run.name === runName.value) ?? probed.value[0] ?? null,
);

/** The measures that the chosen place has. */
export const offered = computed<Change[]>(() => {
  const list = probed.value.map(({ series }) => series);
  return activePlace.value ? measuresAt(list, activePlace.value.id) : [];
});

export const activeChange = computed<Change>(() =>
  offered.value.includes(change.value) ? change.value : DEFAULTS.change,
);

/** The layer of a place that the Layer view can show. */
export const layerOfPlace = (own: Spot | null): string | null =>
  own?.kind === "layer" && layers.value.some((layer) => layer.id === own.name) ? own.name : null;

/** The axis of the measure for all runs, of one place or of all. */
export function useChangeAxis(key: string | null, most: number): ChangeAxis {
  const list = probed.value;
  const measure = activeChange.value;
  return useMemo(() => {
    const all = list.map(({ series }) => series);
    return changeAxis(all, measure, key, most);
  }, [list, measure, key]);
}
