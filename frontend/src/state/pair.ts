/** The two runs that are compared, A and B, and their layers. */

import { computed } from "@preact/signals";
import type { LayerInfo } from "../server/types";
import { layerIn, listedLayers, type Run, shownRuns } from "./runs";
import { layerId, other, runName, update } from "./store";

/** The route compares as many at most. */
export const MOST_RUNS = 32;

export type Pair = readonly [Run, Run];

export const comparedRuns = computed(() => shownRuns.value.slice(0, MOST_RUNS));

/** A and B: the chosen ones, else the first two; null where there aren't two. */
export const pairRuns = computed<[Run, Run] | null>(() => {
  const list = comparedRuns.value;
  if (list.length < 2) return null;
  const a = list.find((run) => run.name === runName.value) ?? list[0];
  const b = list.find((run) => run !== a && run.name === other.value);
  return [a, b ?? list[(list.indexOf(a) + 1) % list.length]];
});

/** The layers that A or B has and the filter lets through: those that J and K walk. */
export const pairLayers = computed<LayerInfo[]>(() =>
  listedLayers.value.filter((layer) => pairRuns.value?.some((run) => layerIn(run, layer.id))),
);

export const pairLayer = computed<LayerInfo | null>(
  () => pairLayers.value.find((layer) => layer.id === layerId.value) ?? pairLayers.value[0] ?? null,
);

/** [ and ] move A, { and } move B; where it meets the other one, the two change places or it steps over. */
export function moveCompared(which: 0 | 1, by: number): void {
  const pair = pairRuns.value;
  const list = comparedRuns.value;
  if (!pair) return;
  const at = list.indexOf(pair[which]);
  const next = (steps: number) => list[(((at + steps) % list.length) + list.length) % list.length];
  const found = next(by) === pair[1 - which] && list.length > 2 ? next(2 * by) : next(by);
  const left = found === pair[1 - which] ? pair[which] : pair[1 - which];
  update(which === 0 ? { run: found.name, other: left.name } : { run: left.name, other: found.name });
}
