/** The runs and layers that the page shows, from the index and the page's state. */

import { computed, type ReadonlySignal, signal } from "@preact/signals";
import { kept } from "../data/kept";
import { type Labels, labelsOf } from "../data/labels";
import { mergeLayers } from "../data/layers";
import { groupName, passes, shortNames } from "../data/names";
import type { Scale } from "../data/scale";
import { FOLLOWING, LEGEND } from "../data/states";
import { expand, mergeSteps } from "../data/steps";
import { SHAPES } from "../draw/marker";
import { pageTextWidth } from "../draw/text";
import { runColor } from "../draw/theme";
import { fetchIndex } from "../server/fetch";
import type { IndexAnswer, LayerInfo, RunInfo } from "../server/types";
import { type Resource, resource } from "./resource";
import {
  dark,
  grouping,
  hidden,
  hostRuns,
  layerFilter,
  layerId,
  page,
  runFilter,
  runName,
  variableId,
  view,
  zoom,
} from "./store";

export interface Run extends RunInfo {
  color: string;
  shape: number;
  shown: boolean;
  /** The part of its name that distinguishes it from the others. */
  short: string;
  /** The steps of all its records, rising. */
  recordSteps: Float64Array;
}

export const indexOf = (): Resource<IndexAnswer> => resource("index", "", (ask) => fetchIndex({}, ask)).value;

const indexValue = computed(() => indexOf().value);

/** The threshold as the slider shows it; the page's own follows after a pause. */
export const draftThreshold = signal<number | null>(null);
export const threshold = computed(() => page.value.threshold ?? indexValue.value?.threshold ?? 1e-4);
export const patience = computed(() => indexValue.value?.patience ?? 5);

const names = computed(() => (indexValue.value?.runs ?? []).map(({ name }) => name));
const shorts = computed(() => shortNames(names.value));

/** The size of the page's letters. */
const LETTERS = 13;
const widthOf = (text: string) => pageTextWidth(text, LETTERS);

/** What runs are called in a room of so many pixels. */
export const runLabels: ReadonlySignal<Labels> = computed(() => labelsOf(names.value, widthOf, false));

const expanded = computed(() => (indexValue.value?.runs ?? []).map((run) => expand(run.steps)));

/** A shape that no other run of the colour has, as long as there is one. */
function shapeOf(color: string, first: number, taken: Set<string>): number {
  const tries = Array.from({ length: SHAPES }, (_, i) => (first + i) % SHAPES);
  const shape = tries.find((own) => !taken.has(`${color} ${own}`)) ?? first % SHAPES;
  taken.add(`${color} ${shape}`);
  return shape;
}

/** All runs, with the colours of TensorBoard's Time Series. */
export const runs: ReadonlySignal<Run[]> = computed(() => {
  const hiddenNames = new Set(hidden.value);
  const taken = new Set<string>();
  return (indexValue.value?.runs ?? []).map((run, i) => {
    const index = [run.name, ...run.tb_runs].map((name) => hostRuns.value.indexOf(name)).find((at) => at >= 0) ?? i;
    const color = runColor(index, dark.value);
    const look = { color, shape: shapeOf(color, i, taken), shown: !hiddenNames.has(run.name) };
    return { ...run, ...look, short: shorts.value.get(run.name)!, recordSteps: expanded.value[i] };
  });
});

const byName = computed(() => new Map(runs.value.map((run) => [run.name, run])));

export const runNamed = (name: string | null): Run | null => (name === null ? null : (byName.value.get(name) ?? null));

/** Runs that pass the filter, ticked or not. */
export const listedRuns = computed(() => runs.value.filter((run) => passes(runFilter.value, run.name)));

/** Runs that the views draw. */
export const shownRuns = computed(() => listedRuns.value.filter((run) => run.shown && run.records > 0));

export interface RunGroup {
  name: string;
  runs: Run[];
}

/** In the order of their first runs; a run that the pattern doesn't match is its own group. */
export const groups = computed<RunGroup[]>(() => {
  const { pattern } = grouping.value;
  const byGroup = new Map<string, Run[]>();
  for (const run of shownRuns.value) {
    const group = pattern && groupName(run.name, pattern);
    const key = group === null ? `run ${run.name}` : `group ${group}`;
    byGroup.set(key, [...(byGroup.get(key) ?? []), run]);
  }
  const names = [...byGroup.keys()].map((key) => key.slice(key.indexOf(" ") + 1));
  const short = shortNames(names);
  return [...byGroup.values()].map((runs, i) => ({ name: short.get(names[i]) || "(all)", runs }));
});

/** The layers of all shown runs in forward order. */
export const layers = computed<LayerInfo[]>(() => {
  const networks = [...new Set(shownRuns.value.map((run) => run.network))];
  return mergeLayers(networks.map((at) => indexValue.value?.networks[at]).filter((network) => network !== undefined));
});

/** What layers are called in a room of so many pixels. */
export const layerLabels: ReadonlySignal<Labels> = computed(() =>
  labelsOf(
    layers.value.map(({ id }) => id),
    widthOf,
  ),
);

/** Layers that pass the filter: those that J and K walk. */
export const listedLayers = computed(() => layers.value.filter((layer) => passes(layerFilter.value, layer.id)));

/** The states that are listed: that of what follows only where there is such a layer. */
export const listed = computed<readonly number[]>(() =>
  layers.value.some((layer) => layer.follows) ? [...LEGEND, FOLLOWING] : LEGEND,
);
/** Their ids: the layers of the total row. */
export const totalLayers = computed<readonly string[]>(() => listedLayers.value.map(({ id }) => id));

const recordedIn = (run: RunInfo, id: string): LayerInfo | undefined =>
  indexValue.value?.networks[run.network]?.layers.find((layer) => layer.id === id);

const hasVariable = (layer: LayerInfo | undefined, id: string): boolean =>
  layer?.variables.some((variable) => variable.id === id) ?? false;

/** The variable chosen in the Layer view; null for the main one, and if no shown run has it. */
const chosenVariable = computed(() => {
  const [layer, id] = [activeLayer.value?.id, variableId.value];
  const found =
    layer !== undefined && id !== null && shownRuns.value.some((run) => hasVariable(recordedIn(run, layer), id));
  return found ? id : null;
});

/** A layer as the given run has it, with the variable that is shown of it: a run may lack either. */
export function layerIn(run: RunInfo, id: string): LayerInfo | undefined {
  const [layer, chosen] = [recordedIn(run, id), variableOf(id)];
  return chosen === null || hasVariable(layer, chosen) ? layer : undefined;
}

const idsOf = kept((list: readonly LayerInfo[]) => new Set(list.map(({ id }) => id)));

/** Whether a run has none of some layers. */
export function lacks(run: RunInfo, ids: readonly string[]): boolean {
  const own = indexValue.value?.networks[run.network]?.layers;
  return own !== undefined && ids.length > 0 && !ids.some((id) => idsOf(own).has(id));
}

/** The layer of the Layer view: the chosen one, null where no shown run has it; the first one where none is chosen. */
export const activeLayer = computed<LayerInfo | null>(() => {
  if (layerId.value !== null) return layers.value.find((layer) => layer.id === layerId.value) ?? null;
  return listedLayers.value[0] ?? layers.value[0] ?? null;
});

/** The chosen run, or the first one where that isn't among them. */
export const chosenRun = (list: readonly Run[]): Run | null =>
  list.find((run) => run.name === runName.value) ?? list[0] ?? null;

/** The run of the Layer view: the chosen one, or the first shown that has the layer. */
export const activeRun = computed<Run | null>(() => {
  const id = activeLayer.value?.id;
  return chosenRun(shownRuns.value.filter((run) => id !== undefined && layerIn(run, id) !== undefined));
});

/** The run whose shares the legend has: that of the view, or the chosen one, or the first. */
export const focusedRun = computed(() => (view.value === "layer" ? activeRun.value : chosenRun(shownRuns.value)));

/** The variable that is shown of a layer instead of its main one, null for that. */
export const variableOf = (layer: string): string | null =>
  layer === activeLayer.value?.id ? chosenVariable.value : null;

/** The runs whose steps the view shows: those that have the layer, or a probe if any has one. */
export const viewedRuns = computed(() => {
  const layer = view.value === "layer" ? activeLayer.value : null;
  const probed = view.value === "function" ? shownRuns.value.filter((run) => run.probe) : [];
  return probed.length > 0 ? probed : shownRuns.value.filter((run) => !layer || layerIn(run, layer.id));
});

/** The steps of all records of the runs that the view shows. */
export const viewedSteps = computed(() => mergeSteps(viewedRuns.value.map((run) => run.recordSteps)));

/** The steps of all runs that the view shows: one axis for every panel. */
export const fullRange = computed<[number, number]>(() => {
  const recorded = viewedRuns.value.filter((run) => run.first_step !== null && run.last_step !== null);
  if (recorded.length === 0) return [0, 1];
  const from = Math.min(...recorded.map((run) => run.first_step!));
  const ends = recorded.map((run) => {
    const gap = run.records > 1 ? (run.last_step! - run.first_step!) / (run.records - 1) : 1;
    return run.last_step! + Math.max(1, Math.round(gap));
  });
  return [from, Math.max(from + 1, ...ends)];
});

const sighted = computed(() => zoom.value ?? fullRange.value);
const first = computed(() => sighted.value[0]);
const end = computed(() => sighted.value[1]);

/** The steps in sight: another list only where they are others. */
export const range = computed<[number, number]>(() => [first.value, end.value]);

export const scaleOf = (width: number): Scale => ({ from: range.value[0], to: range.value[1], width });
