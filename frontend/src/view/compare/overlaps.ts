/** The overlaps that the server counts, and what is said of them. */

import { computed } from "@preact/signals";
import { formatCount, formatShare } from "../../model/format";
import type { Unit } from "../../model/hash";
import { formatOverlap, type Lap, type Laps, lapAt, numbersText, pairOf, readLaps } from "../../model/overlap";
import { fetchOverlap, fetchOverlapLayers } from "../../wire/client";
import type { LayerInfo, OverlapAnswer, OverlapPair } from "../../wire/types";
import { cursor } from "../state/cursor";
import { layerIn, type Run } from "../state/data";
import { type Resource, resource } from "../state/resource";
import { maskKind, page, unit, zoom } from "../state/store";
import { chosen, comparedRuns, pairLayer, pairLayers } from "./pair";

/** Holding an arrow key shall not ask for the overlap of each step on the way. */
const rest = () => new Promise((resolve) => setTimeout(resolve, 50));

/** The overlaps of runs at the cursor, over all layers or in one. */
export function askOverlap(
  counted: Unit,
  runs: readonly Run[] = comparedRuns.value,
  layer: string | null = null,
): Resource<OverlapAnswer> {
  const run = runs.map((one) => one.name);
  const query = { run, step: Math.round(cursor.value), layer, unit: counted, mask: maskKind.value };
  return resource(`overlap ${counted} ${layer}`, JSON.stringify(query), async (ask) => {
    if (page.peek().step !== null) await rest();
    ask.signal.throwIfAborted();
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
export const chosenPair = computed<OverlapPair | null>(() => {
  const pair = chosen.value;
  const answer = pair && overlapOf().value;
  return answer ? pairOf(answer, pair[0].name, pair[1].name) : null;
});

/** A column of a layer takes 32 bytes; no answer shall have more than 2 MB. */
const MOST_VALUES = 60_000;

export function lapsOf([a, b]: readonly [Run, Run]): Resource<Laps> {
  const most = Math.floor(MOST_VALUES / Math.max(1, pairLayers.value.length));
  const cols = Math.max(8, Math.min(zoom.value ? 2048 : 256, most));
  const query = { run: a.name, other: b.name, unit: counted.value, mask: maskKind.value, cols };
  return resource(
    `overlap_layers ${JSON.stringify([a.name, b.name])}`,
    JSON.stringify(query),
    async (ask) => readLaps(await fetchOverlapLayers(query, ask)),
    (laps) => laps.overlap.length * 32,
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
export function comparedLayers(pair: readonly [Run, Run], laps: Laps): ComparedLayer[] {
  return pairLayers.value.map((layer) => {
    const having = pair.filter((run) => layerIn(run, layer.id));
    const row = laps.rows.get(layer.id) ?? -1;
    const [a, b] = having.map((run) => layerIn(run, layer.id)!.shape.join());
    const reason = having.length === 1 ? `only in ${having[0].name}` : a !== b ? "shapes differ" : "nothing to prune";
    return { layer, row, reason: row < 0 ? reason : "" };
  });
}

/** A share that is kept, a dash where it isn't known. */
export const shareText = (kept: number, elements: number): string =>
  Number.isNaN(kept) ? "–" : formatShare(kept, elements);

/** "0.41 / 0.29", or the shares that are kept where channels can't be matched. */
export function lapText(lap: Lap | null, comparable: boolean): string {
  if (!lap) return "–";
  if (comparable) return `${formatOverlap(lap.overlap)} / ${formatOverlap(lap.chance)}`;
  return [lap.kept, lap.otherKept].map((kept) => shareText(kept, lap.elements)).join(" | ");
}

/** For the live region: the pair, and the layer in it. */
export function spokenPair(): string {
  const [pair, found] = [chosen.value, chosenPair.value];
  const answer = pair && overlapOf().value;
  if (!pair || !answer || !found) return "";
  const laps = lapsOf(pair).value;
  const layer = pairLayer.value?.id ?? "";
  const own = laps?.header.comparable ? `, ${layer} ${lapText(lapAt(laps, layer, cursor.value), true)}` : "";
  return `Step ${formatCount(answer.step)}: ${pair[0].name} and ${pair[1].name} ${numbersText(found)}${own}`;
}
