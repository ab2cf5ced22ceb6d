/** The server's answers about runs: asked for when shown, kept while a newer answer loads. */

import { computed, effect, untracked } from "@preact/signals";
import { type Cells, joinCells, readCells } from "../data/cells";
import { kept, keptByValue } from "../data/kept";
import { type RecordBlock, readBlock } from "../data/record";
import { runColumn, SIDEBAR } from "../data/rowbox";
import { commonName, readScalars, type Scalars } from "../data/scalars";
import { lastAtOrBefore } from "../data/steps";
import { auditOf, byLayer, type LayerAudit } from "../data/violations";
import { type Drawn, type Lane, readDrawn, readLane } from "../draw/columns";
import {
  fetchChannel,
  fetchFindings,
  fetchLane,
  fetchLayer,
  fetchOverview,
  fetchRecords,
  fetchScalars,
  fetchViolations,
} from "../server/fetch";
import type { ChannelAnswer, Finding, FindingsAnswer, OverviewHeader, ViolationsAnswer } from "../server/types";
import { follower } from "./following";
import { type Resource, resource } from "./resource";
import { activeLayer, activeRun, layerIn, type Run, range, runNamed, shownRuns, threshold, variableOf } from "./runs";
import { pageWidth, scalar, view } from "./store";
import { inSight } from "./viewport";

export type { Drawn, Lane };

type Part = Record<"first" | "last", number>;

/** The facts of a run as a whole, and the columns that its strips are drawn from. */
interface Overview {
  header: OverviewHeader;
  drawn: Drawn;
  /** The steps that were asked for, where those aren't all. */
  part: Part | null;
}

/** Columns that an overview is asked for: at least as many as its picture has pixels, and few different numbers. */
const overviewColumns = computed(() => {
  const pixels = runColumn(pageWidth.value - SIDEBAR, shownRuns.value.length) * window.devicePixelRatio;
  const power = 2 ** Math.floor(Math.log2(pixels));
  const cols = [1, 1.5, 2].map((times) => times * power).find((size) => size >= pixels);
  return Math.min(2048, Math.max(64, cols ?? 64));
});

/** An overview of all steps, or of some. */
function askOverview(run: string, part: Part | null): Resource<Overview> {
  const cols = overviewColumns.value;
  return resource(
    `${part ? "detail" : "overview"} ${run}`,
    [threshold.value, cols, part?.first, part?.last].join(" "),
    async (ask) => {
      const answer = await fetchOverview({ run, cols, th: untracked(() => threshold.value), ...part }, ask);
      return { header: answer.header, drawn: readDrawn(answer), part };
    },
    ({ header, drawn }) => header.layers.length * drawn.starts.length * 44,
    part !== null || view.value !== "network" || !inSight(run),
  ).value;
}

/** For a run that no longer exists. */
const GONE: Resource<Overview> = { value: null, error: null, loading: false, at: 0 };

const overviews = keptByValue((run: string) => computed(() => (runNamed(run) ? askOverview(run, null) : GONE)));

/** Asked for by every row of every run: what it depends on is read once a change. */
export const overviewOf = (run: string): Resource<Overview> => overviews(run).value;

/** What detail is asked for: follows the zoom, as asking takes time that the first picture has to have. */
export const askedZoom = follower<readonly [number, number] | null>(null);

/** The steps of the records around a range, with one more on each side. */
function around(steps: Float64Array, [from, to]: readonly [number, number]): Part {
  const first = Math.max(0, lastAtOrBefore(steps, from) - 1);
  const last = Math.min(steps.length - 1, lastAtOrBefore(steps, to) + 1);
  return { first: steps[first], last: steps[last] };
}

/** The part that is zoomed to; null where the overview has all its detail: where each column is a record already. */
function detailOf(name: string): Resource<Overview> | null {
  const steps = runNamed(name)?.recordSteps;
  if (!askedZoom.value || !overviewOf(name).value || !steps || steps.length <= overviewColumns.value) return null;
  return askOverview(name, around(steps, askedZoom.value));
}

function finest(name: string): Drawn | null {
  const whole = overviewOf(name).value;
  const steps = runNamed(name)?.recordSteps;
  const detail = detailOf(name)?.value;
  if (!whole || !steps || !detail) return whole?.drawn ?? null;
  if (!detail.part || detail.header.threshold !== whole.header.threshold) return whole.drawn;
  const sighted = around(steps, range.value);
  const fits = detail.part.first <= sighted.first && detail.part.last >= sighted.last;
  return fits ? detail.drawn : whole.drawn;
}

const finests = keptByValue((run: string) => computed(() => finest(run)));

/** What the strips of a run are drawn from: for a long run the zoomed part in more detail, once that is loaded. */
export const drawnOf = (run: string): Drawn | null => finests(run).value;

/** Records that come in one answer: few, as the pointer asks for those of all runs wherever it goes. */
export const BLOCK = 4;

/**
 * Some records of a run, exactly.
 *
 * @param number of the block, from 0.
 * @param th by default the page's threshold; with 0 no channel is ever quiet.
 */
export function blockOf(run: Run, number: number, th = threshold.value): Resource<RecordBlock> {
  const first = run.recordSteps[number * BLOCK];
  return resource(
    `records ${th === 0 ? "without quiet" : ""} ${run.name} ${number}`,
    `${th} ${first} ${Math.min(BLOCK, run.records - number * BLOCK)}`,
    async () => readBlock(await fetchRecords(run.name, { at: first, count: BLOCK, th })),
    (block) => block.counts.byteLength + block.pruned.byteLength + block.age.byteLength * 3,
  ).value;
}

/** Asks for what is looked at as soon as it is known what that is: before anything of it is rendered. */
export const askFirst = (): (() => void) =>
  effect(() => {
    if (view.value === "network") for (const run of shownRuns.value) if (inSight(run.name)) overviewOf(run.name);
    const [run, layer] = [activeRun.value, activeLayer.value];
    if (view.value === "layer" && run && layer) cellsOf(run.name, layer.id);
    const names = shownRuns.value.map(({ name }) => name);
    if (view.value !== "findings" || names.length === 0) return;
    findingsOf(names);
    for (const name of names) laneOf(name);
  });

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

/** A layer of a run once it is there; null where the run has no such layer. */
export const layerCells = (run: Run, layer: string): Cells | null =>
  layerIn(run, layer) ? cellsOf(run.name, layer).value : null;

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
    (ask) => fetchViolations({ run }, ask),
    (answer) => answer.violations.length * 400,
    true,
  ).value;
}

const auditsOf = kept((answer: ViolationsAnswer) => byLayer(answer.violations));

/** The list of a run whose overview knows of violations; null where there are none, and while that isn't loaded. */
const violationsKnown = (run: string): Resource<ViolationsAnswer> | null =>
  overviewOf(run).value?.header.violated_channels ? violationsOf(run) : null;

/** Whether a run has violations whose list isn't loaded, and why. */
export function listLost(run: string): string | null {
  const answer = violationsKnown(run);
  return answer && !answer.value ? answer.error : null;
}

/** What the column of a run is made of, except for its figures. */
export const columnAnswers = (run: string): (Resource<unknown> | null)[] => [
  overviewOf(run),
  detailOf(run),
  violationsKnown(run),
];

/**
 * What of some layers was violated in a run, from the audit's list, which is exact; null where nothing was, and while
 * it loads.
 */
export function violatedIn(run: string, layers: readonly string[]): LayerAudit | null {
  // The list is asked for only where the overview knows of any.
  const answer = violationsKnown(run)?.value ?? null;
  return answer && auditOf(auditsOf(answer), layers);
}

/** Runs that one request for findings may name. */
export const MOST_RUNS = 256;

/** The findings of some runs together, the first ones if there are too many. */
export function findingsOf(runs: readonly string[]): Resource<FindingsAnswer> {
  const run = runs.slice(0, MOST_RUNS);
  return resource(
    "findings",
    JSON.stringify(run),
    (ask) => fetchFindings({ run }, ask),
    (answer) => answer.findings.length * 400,
  ).value;
}

/** Columns of a lane, and of the small strip of a finding. */
const [LANE, SMALL] = [512, 128];
/** A finding about more layers is drawn by the whole run. */
const MOST_LAYERS = 64;

function askLane(key: string, run: string, cols: number, layer: readonly string[]): Resource<Lane> {
  return resource(
    key,
    String(threshold.value),
    async () => readLane(await fetchLane(run, { cols, layer, th: untracked(() => threshold.value) })),
    ({ columns }) => columns.starts.length * 90,
    cols === SMALL,
  ).value;
}

/** A run as one lane: all its layers together. */
export const laneOf = (run: string): Resource<Lane> => askLane(`lane ${run}`, run, LANE, []);

/** What a finding is about: its layers together, in the run that it leads to. */
export function findingLane({ layers, link }: Finding): Resource<Lane> | null {
  const own = runNamed(link.run);
  if (!own || own.records === 0) return null;
  const present = layers.filter((layer) => layerIn(own, layer));
  const asked = present.length > MOST_LAYERS ? [] : present;
  return askLane(`lane ${own.name} ${asked.join("\n")}`, own.name, SMALL, asked);
}

function askScalars(key: string, run: string, named: () => string | null): Resource<Scalars> {
  return resource(
    `${key} ${run}`,
    named() ?? "",
    async () => readScalars(await fetchScalars(run, { name: untracked(named) })),
    ({ steps }) => steps.length * 24,
    true,
  ).value;
}

const firstScalars = (run: string) => askScalars("scalars", run, () => scalar.value);

/** What all lanes show: the chosen scalar, or of those that look most like a loss one that every run has, or the first. */
export const laneScalar = computed<string | null>(
  () => scalar.value ?? commonName(shownRuns.value.flatMap((run) => firstScalars(run.name).value ?? [])),
);

/** That scalar of a run. */
export function scalarsOf(run: string): Resource<Scalars> {
  const own = firstScalars(run);
  const other = scalar.value === null && own.value?.name && own.value.name !== laneScalar.value;
  return other ? askScalars("scalars of lanes", run, () => laneScalar.value) : own;
}

/** The scalars that any shown run has. */
export const scalarNames = computed<readonly string[]>(() => [
  ...new Set(shownRuns.value.flatMap(({ name }) => firstScalars(name).value?.names ?? [])),
]);

/** Whether any shown run has pruned weights: otherwise the page doesn't mention them. */
export const sparse = computed(() => shownRuns.value.some((run) => overviewOf(run.name).value?.header.sparse));
