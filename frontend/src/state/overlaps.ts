/** The two runs that are compared, A and B, and the overlaps that the server counts. */

import { computed } from "@preact/signals";
import { DASH } from "../data/absent";
import { formatCount, formatShare } from "../data/format";
import { choosePair, formatOverlap, type LayerOverlaps, numbersText, pairOf, readLayerOverlaps } from "../data/overlap";
import type { Unit } from "../data/urlstate";
import { type OverlapColumns, readOverlapColumns } from "../draw/difference";
import { type Ask, fetchOverlap, fetchOverlapLayers } from "../server/fetch";
import type { LayerInfo, OverlapAnswer, OverlapPair } from "../server/types";
import { sameOrigin } from "./baseline";
import { cursor } from "./cursor";
import { insteadText, type Resource, resource } from "./resource";
import { layerIn, listedLayers, type Run, shownRuns } from "./runs";
import { layerId, maskKind, other, page, runName, unit, update, zoom } from "./store";

/** The route compares as many at most. */
export const MOST_RUNS = 32;

export type Pair = readonly [Run, Run];

export const comparedRuns = computed(() => shownRuns.value.slice(0, MOST_RUNS));

/** A and B: the chosen ones, else the first two that can be compared, or the first two; null where there aren't two. */
export const pairRuns = computed<Pair | null>(() =>
  choosePair(comparedRuns.value, runName.value, other.value, sameOrigin),
);

/** The layers that A or B has and the filter lets through: those that J and K walk. */
export const pairLayers = computed<LayerInfo[]>(() =>
  listedLayers.value.filter((layer) => pairRuns.value?.some((run) => layerIn(run, layer.id))),
);

export const pairLayer = computed<LayerInfo | null>(
  () => pairLayers.value.find((layer) => layer.id === layerId.value) ?? pairLayers.value[0] ?? null,
);

/** [ and ] move A, { and } move B; if it meets the other one, the two change places or it skips that run. */
export function moveCompared(which: 0 | 1, by: number): void {
  const pair = pairRuns.value;
  const list = comparedRuns.value;
  if (!pair) return;
  const place = list.indexOf(pair[which]);
  const next = (steps: number) => list[(((place + steps) % list.length) + list.length) % list.length];
  const moved = next(by) === pair[1 - which] && list.length > 2 ? next(2 * by) : next(by);
  const left = moved === pair[1 - which] ? pair[which] : pair[1 - which];
  update(which === 0 ? { run: moved.name, other: left.name } : { run: left.name, other: moved.name });
}

/** Holding an arrow key doesn't ask for the overlap of each step on the way. */
async function rest({ signal }: Ask): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 50));
  signal.throwIfAborted();
}

/** The overlaps of runs at the cursor, over all layers or in one. */
export function askOverlap(
  counted: Unit,
  runs: readonly Run[] = comparedRuns.value,
  layer: string | null = null,
): Resource<OverlapAnswer> {
  const run = runs.map(({ name }) => name);
  const query = { run, step: Math.round(cursor.value), layer, unit: counted, mask: maskKind.value };
  return resource(`overlap ${counted} ${layer}`, JSON.stringify(query), async (ask) => {
    if (page.peek().step !== null) await rest(ask);
    return fetchOverlap(query, ask);
  }).value;
}

/** Weights, where those of all runs are known; the toggle goes before. */
export const counted = computed<Unit>(() => {
  if (unit.value) return unit.value;
  const runs = comparedRuns.value.length > 1 ? askOverlap("weights").value?.runs : null;
  return runs?.some((run) => run.kept === null && run.step !== null) ? "channels" : "weights";
});

export const overlapOf = (): Resource<OverlapAnswer> => askOverlap(counted.value);

/** The numbers of the pair at the cursor, as far as they are there. */
export const pairOverlap = computed<OverlapPair | null>(() => {
  const pair = pairRuns.value;
  const answer = pair && overlapOf().value;
  return answer ? pairOf(answer, pair[0].name, pair[1].name) : null;
});

/** A column of a layer takes 40 bytes; no answer has more than 2 MB. */
const MOST_VALUES = 50_000;

const asked = ([a, b]: Pair) => ({
  run: a.name,
  other: b.name,
  unit: counted.value,
  mask: maskKind.value,
});

/** The overlap of two runs by layer and step, to be drawn. */
export function overlapColumnsOf(pair: Pair): Resource<OverlapColumns> {
  const most = Math.floor(MOST_VALUES / Math.max(1, pairLayers.value.length));
  const query = { ...asked(pair), cols: Math.max(8, Math.min(zoom.value ? 2048 : 256, most)) };
  return resource(
    `overlap_layers ${JSON.stringify([query.run, query.other])}`,
    JSON.stringify(query),
    async (ask) => readOverlapColumns(await fetchOverlapLayers(query, ask)),
    (columns) => columns.size * 40,
  ).value;
}

/** The same exactly at a step. */
export function layerOverlapsAt(pair: Pair, step: number): Resource<LayerOverlaps> {
  const query = { ...asked(pair), at: Math.round(step) };
  return resource(
    `overlap_at ${JSON.stringify(query)}`,
    "",
    async (ask) => {
      await rest(ask);
      return readLayerOverlaps(await fetchOverlapLayers(query, ask));
    },
    ({ layers }) => layers.size * 100,
  ).value;
}

export interface ComparedLayer {
  layer: LayerInfo;
  /** Its place in the answer, -1 where it isn't compared. */
  row: number;
  /** Why it isn't. */
  reason: string;
}

/** The layers of both runs. */
export function comparedLayers(pair: Pair, { header }: OverlapColumns): ComparedLayer[] {
  const rows = new Map(header.layers.map((layer, row) => [layer, row]));
  return pairLayers.value.map((layer) => {
    const having = pair.filter((run) => layerIn(run, layer.id));
    const row = rows.get(layer.id) ?? -1;
    const [a, b] = having.map((run) => layerIn(run, layer.id)!.shape.join());
    const reason = having.length === 1 ? `only in ${having[0].name}` : a !== b ? "shapes differ" : "nothing to prune";
    return { layer, row, reason: row < 0 ? reason : "" };
  });
}

/** A share that is kept, a dash where it isn't known. */
export const shareText = (kept: number, elements: number): string =>
  Number.isNaN(kept) ? "–" : formatShare(kept, elements);

/** "0.41 / 0.29", or the shares that are kept where channels can't be matched. */
export function overlappedText(answer: Resource<LayerOverlaps>, layer: string): string {
  const overlaps = answer.value;
  if (!overlaps) return insteadText(answer);
  const own = overlaps.layers.get(layer);
  if (!own) return DASH;
  if (overlaps.header.comparable) return `${formatOverlap(own.overlap)} / ${formatOverlap(own.chance)}`;
  return [own.kept, own.otherKept].map((kept) => shareText(kept, own.elements)).join(" | ");
}

/** For the live region: the pair, and the layer in it. */
export function spokenPair(): string {
  const [pair, found] = [pairRuns.value, pairOverlap.value];
  const answer = pair && overlapOf().value;
  if (!pair || !answer || !found) return "";
  const layer = pairLayer.value?.id ?? "";
  const own = found.comparable ? `, ${layer} ${overlappedText(layerOverlapsAt(pair, cursor.value), layer)}` : "";
  return `Step ${formatCount(answer.step)}: ${pair[0].name} and ${pair[1].name} ${numbersText(found)}${own}`;
}
