/** What the views show, from the server's answers and the page's state. */

import { computed, effect, type ReadonlySignal, signal, untracked } from "@preact/signals";
import { SHAPES } from "../../draw/marker";
import { runColor } from "../../draw/palette";
import { type Cells, readCells } from "../../model/cells";
import { joinCells } from "../../model/join";
import { type Overview, readOverview, sumOf } from "../../model/overview";
import type { Scale } from "../../model/scale";
import { violations } from "../../model/series";
import { mergeLayers, treeRows } from "../../model/tree";
import { auditOf, byLayer, type LayerAudit } from "../../model/violations";
import { fetchChannel, fetchIndex, fetchLayer, fetchOverview, fetchViolations } from "../../wire/client";
import type { ChannelAnswer, IndexAnswer, LayerInfo, RunInfo, Violation, ViolationsAnswer } from "../../wire/types";
import { runColumn, SIDEBAR } from "../network/geometry";
import { type Resource, resource } from "./resource";
import { inSight } from "./sight";
import {
  closed,
  dark,
  hidden,
  hostRuns,
  layerFilter,
  layerId,
  page,
  pageWidth,
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
}

export const indexOf = (): Resource<IndexAnswer> => resource("index", "", fetchIndex).value;

const indexValue = computed(() => indexOf().value);

/** The threshold as the slider shows it; the page's own follows after a pause. */
export const draftThreshold = signal<number | null>(null);
export const threshold = computed(() => page.value.threshold ?? indexValue.value?.threshold ?? 1e-4);
export const patience = computed(() => indexValue.value?.patience ?? 5);

/** All runs, with the colours of TensorBoard's Time Series. */
export const runs: ReadonlySignal<Run[]> = computed(() => {
  const hiddenNames = new Set(hidden.value);
  return (indexValue.value?.runs ?? []).map((run, i) => {
    const index = [run.name, ...run.tb_runs].map((name) => hostRuns.value.indexOf(name)).find((at) => at >= 0) ?? i;
    return { ...run, color: runColor(index, dark.value), shape: i % SHAPES, shown: !hiddenNames.has(run.name) };
  });
});

/** Runs that pass the filter, ticked or not. */
export const listedRuns = computed(() => {
  const { pattern } = runFilter.value;
  return runs.value.filter((run) => !pattern || pattern.test(run.name));
});

/** Runs that the views draw. */
export const shownRuns = computed(() => listedRuns.value.filter((run) => run.shown && run.records > 0));

const networkOf = (run: RunInfo) => indexValue.value?.networks[run.network];

/** The layers of all shown runs in forward order. */
export const layers = computed<LayerInfo[]>(() => {
  const networks = [...new Set(shownRuns.value.map((run) => run.network))];
  return mergeLayers(networks.map((at) => indexValue.value?.networks[at]).filter((network) => network !== undefined));
});

export const rows = computed(() => treeRows(layers.value, new Set(closed.value), layerFilter.value.pattern));

/** Layers that pass the filter: those that J and K walk. */
export const listedLayers = computed(() => {
  const { pattern } = layerFilter.value;
  return layers.value.filter((layer) => !pattern || pattern.test(layer.id));
});

/** The layer of the Layer view as the given run has it. */
export function layerIn(run: RunInfo, id: string): LayerInfo | undefined {
  return networkOf(run)?.layers.find((layer) => layer.id === id);
}

export const activeLayer = computed<LayerInfo | null>(
  () => layers.value.find((layer) => layer.id === layerId.value) ?? listedLayers.value[0] ?? layers.value[0] ?? null,
);

/** The run of the Layer view: the chosen one, or the first shown that has the layer. */
export const activeRun = computed<Run | null>(() => {
  const id = activeLayer.value?.id;
  const having = shownRuns.value.filter((run) => id !== undefined && layerIn(run, id) !== undefined);
  return having.find((run) => run.name === runName.value) ?? having[0] ?? null;
});

/** Columns that an overview is asked for: at least as many as its picture has pixels, and few different numbers. */
export const overviewColumns = computed(() => {
  const pixels = runColumn(pageWidth.value - SIDEBAR, shownRuns.value.length) * window.devicePixelRatio;
  const power = 2 ** Math.floor(Math.log2(pixels));
  const cols = [1, 1.5, 2].map((times) => times * power).find((some) => some >= pixels);
  return Math.min(2048, Math.max(64, cols ?? 64));
});

export const overviewSize = (overview: Overview): number => overview.layers.length * overview.starts.length * 44;

const overviews = new Map<string, ReadonlySignal<Resource<Overview>>>();

function askOverview(run: string, place: string, th: () => number): Resource<Overview> {
  const cols = overviewColumns.value;
  return resource(
    place,
    `${th()} ${cols}`,
    async (ask) => readOverview(await fetchOverview({ run, cols, th: untracked(th) }, ask)),
    overviewSize,
    view.value !== "network" || !inSight(run),
  ).value;
}

/** Asked for by every row of every run: what it depends on is read once a change. */
export function overviewOf(run: string): Resource<Overview> {
  const found = overviews.get(run) ?? computed(() => askOverview(run, `overview ${run}`, () => threshold.value));
  overviews.set(run, found);
  return found.value;
}

/** Asks for what is looked at as soon as it is known what that is: before anything of it is rendered. */
export const askFirst = (): (() => void) =>
  effect(() => {
    if (view.value === "network") for (const run of shownRuns.value) if (inSight(run.name)) overviewOf(run.name);
    const [run, layer] = [activeRun.value, activeLayer.value];
    if (view.value === "layer" && run && layer) cellsOf(run.name, layer.id);
  });

/** The overview as if no channel ever settled: its means count the smallest movements too. */
export const unsettledOf = (run: string): Resource<Overview> => askOverview(run, `unsettled ${run}`, () => 0);

/** The chosen variable of a layer, as far as the layer has it. */
export function variableOf(layer: string): string | null {
  const active = activeLayer.value;
  return layer === active?.id && active.variables.some((one) => one.id === variableId.value) ? variableId.value : null;
}

export function cellsOf(run: string, layer: string): Resource<Cells> {
  const variable = variableOf(layer);
  return resource<Cells>(
    `layer ${run} ${layer} ${variable ?? ""}`,
    String(threshold.value),
    async (ask, before) => {
      const query = { run, layer, variable, th: threshold.peek() };
      if (before && before.records > 0 && before.header.threshold === query.th) {
        const since = before.steps[before.records - 1];
        const joined = joinCells(before, readCells(await fetchLayer({ ...query, since }, ask)));
        if (joined) return joined;
      }
      return readCells(await fetchLayer(query, ask));
    },
    (cells) => cells.state.byteLength + cells.delta.byteLength,
    view.value === "layer" && run !== activeRun.value?.name,
  ).value;
}

export function channelOf(run: string, layer: string, channel: number): Resource<ChannelAnswer> {
  const variable = variableOf(layer);
  return resource(
    `channel ${run} ${layer} ${variable ?? ""} ${channel}`,
    String(threshold.value),
    (ask) => fetchChannel({ run, layer, variable, channel, th: threshold.peek() }, ask),
    (answer) => answer.steps.length * 120,
  ).value;
}

export function violationsOf(run: string): Resource<ViolationsAnswer> {
  return resource(
    `violations ${run}`,
    "",
    (ask) => fetchViolations(run, ask),
    (answer) => answer.violations.length * 400,
    true,
  ).value;
}

export interface Violated {
  channels: number;
  firstStep: number;
  /** null until the list is there. */
  first: Violation | null;
}

const audits = new WeakMap<ViolationsAnswer, ReadonlyMap<string, LayerAudit>>();

/** What of some layers was violated in a run: by the list, which is asked for only where the overview shows any. */
export function violatedIn(run: string, layerIds: readonly string[]): Violated | null {
  const overview = overviewOf(run).value;
  const all = overview && sumOf(overview, overview.layers);
  if (!overview || !all || !(violations(all) || overview.violatedChannels)) return null;
  const { value: answer } = violationsOf(run);
  if (answer && answer.total <= answer.violations.length) {
    const known = audits.get(answer) ?? byLayer(answer.violations);
    audits.set(answer, known);
    const found = auditOf(known, layerIds);
    return found && { channels: found.channels, firstStep: found.first.first_step, first: found.first };
  }
  const series = sumOf(overview, layerIds);
  const found = series && violations(series);
  return found && { channels: found.most, firstStep: found.firstStep, first: null };
}

/** Whether any shown run has pruned weights: else nothing is said of them. */
export const sparse = computed(() => shownRuns.value.some((run) => overviewOf(run.name).value?.sparse));

/** The runs whose steps the view shows: those that have the layer, or a probe if any has one. */
export const viewedRuns = computed(() => {
  const layer = view.value === "layer" ? activeLayer.value : null;
  const probed = view.value === "function" ? shownRuns.value.filter((run) => run.probe) : [];
  return probed.length > 0 ? probed : shownRuns.value.filter((run) => !layer || layerIn(run, layer.id));
});

/** The steps of all runs that the view shows: one axis for every panel. */
export const fullRange = computed<[number, number]>(() => {
  const found = viewedRuns.value.filter((run) => run.first_step !== null && run.last_step !== null);
  if (found.length === 0) return [0, 1];
  const from = Math.min(...found.map((run) => run.first_step!));
  const ends = found.map((run) => {
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
