/**
 * The Compare view: where do two runs differ? Mask overlap of all pairs, by layer and step, and two layers side by
 * side.
 */

import { useEffect } from "preact/hooks";
import { toCsv } from "../../data/csv";
import { type LayerOverlaps, mostDifferent } from "../../data/overlap";
import { LISTED } from "../../data/states";
import { mergeSteps } from "../../data/steps";
import { Notes } from "../../parts/widgets";
import { pastText } from "../../parts/words";
import type { OverlapAnswer } from "../../server/types";
import { layerCells } from "../../state/answers";
import { cursor } from "../../state/cursor";
import { openLayer, stepLayer } from "../../state/navigate";
import {
  layerOverlapsAt,
  MOST_RUNS,
  moveCompared,
  overlapOf,
  type Pair,
  pairLayer,
  pairLayers,
  pairRuns,
  spokenPair,
} from "../../state/overlaps";
import { runs, shownRuns, viewedSteps } from "../../state/runs";
import { other, runName, update } from "../../state/store";
import css from "../../style/compare.css";
import { type CsvFile, runFiles, type View } from "../view";
import { LayersPanel } from "./layers";
import { MatrixPanel } from "./matrix";
import { SidePanel } from "./sidebyside";

/** Why the runs' numbers may differ for reasons other than the runs. */
function notesOf([a, b]: Pair): (string | false)[] {
  const shown = shownRuns.value.length;
  const pasts = `Δ of ${a.name} compares with ${pastText(a.past)}, that of ${b.name} with ${pastText(b.past)}`;
  return [
    shown > MOST_RUNS &&
      `Only the first ${MOST_RUNS} of ${shown} selected runs are compared. Filter the runs to compare others.`,
    a.past !== b.past && `${pasts}: their Δ can't be compared. Masks can.`,
  ];
}

/** Opens on something to see: if B isn't chosen, on the runs that differ most. */
function useDifferent(): void {
  const answer = other.value === null && pairRuns.value ? overlapOf().value : null;
  useEffect(() => {
    const pair = answer && mostDifferent(answer, runName.peek());
    if (pair) update({ run: pair[0], other: pair[1] });
  }, [answer]);
}

function CompareView() {
  useDifferent();
  const pair = pairRuns.value;
  if (!pair) {
    const shown = shownRuns.value.length === 1 ? "only one is" : "none is";
    const advice = runs.value.length > 1 ? "Tick another run on the left" : "Record a second run";
    return (
      <section class="panel" aria-label="Compare">
        <p class="message">
          Comparing masks takes two runs; {shown} selected. {advice}, or change the filter for runs.
        </p>
      </section>
    );
  }
  return (
    <div class="compare">
      <section class="panel compare-left" aria-label="Mask overlap of the shown runs">
        <MatrixPanel pair={pair} />
        <LayersPanel pair={pair} />
      </section>
      <section class="panel compare-right" aria-label="The layer in both runs, and the difference">
        <Notes texts={notesOf(pair)} />
        <SidePanel pair={pair} />
      </section>
    </div>
  );
}

/** What the view shows, as far as its data is there. */
function overlapFiles(pair: Pair): CsvFile[] {
  const [answer, overlaps] = [overlapOf().value, layerOverlapsAt(pair, cursor.value).value];
  const pairs = ({ runs, pairs, step, unit, mask }: OverlapAnswer) =>
    pairs.map(({ a, b, ...rest }) => ({ run: runs[a].name, other: runs[b].name, step, unit, mask, ...rest }));
  const layers = ({ step, layers }: LayerOverlaps) =>
    [...layers].map(([layer, numbers]) => ({ step, layer, ...numbers }));
  return [
    ...(answer ? [{ title: "CSV of all pairs", name: ["overlap"], source: () => toCsv(pairs(answer)) }] : []),
    ...(overlaps ? [{ title: "CSV by layer", name: ["overlap_layers"], source: () => toCsv(layers(overlaps)) }] : []),
  ];
}

export const compare: View = {
  component: CompareView,
  css,
  steps() {
    const id = pairLayer.value?.id;
    const lists = (pairRuns.value ?? []).flatMap((run) => (id === undefined ? [] : (layerCells(run, id)?.steps ?? [])));
    return lists.length > 0 ? mergeSteps(lists) : viewedSteps.value;
  },
  layer: () => pairLayer.value?.id ?? null,
  keys: {
    layer: (by) => stepLayer(pairLayers.value, pairLayer.value?.id, by),
    run: (by) => moveCompared(0, by),
    down() {
      if (pairLayer.value) openLayer(pairLayer.value.id, pairRuns.value?.[0].name ?? null);
    },
    up: () => false,
    other: (by) => moveCompared(1, by),
  },
  speak: spokenPair,
  caption: () => `Compare · ${pairRuns.value?.map((run) => run.name).join(" and ") ?? ""}`,
  states: LISTED,
  files() {
    const pair = pairRuns.value;
    return pair ? [...overlapFiles(pair), ...runFiles(pair, pairLayer.value?.id ?? null)] : [];
  },
};
