/** The Compare view: where do two runs differ? Mask overlap of all pairs, by layer and step, and two layers side by side. */

import { useEffect } from "preact/hooks";
import { type LayerOverlaps, mostDifferent, toCsv } from "../../data/overlap";
import { mergeSteps } from "../../data/steps";
import { pastText } from "../../parts/words";
import type { OverlapAnswer } from "../../server/types";
import { cellsOf } from "../../state/answers";
import { cursor } from "../../state/cursor";
import { openLayer, stepLayer } from "../../state/navigate";
import {
  layerOverlapsAt,
  MOST_RUNS,
  moveCompared,
  overlapOf,
  pairLayer,
  pairLayers,
  pairRuns,
  spokenPair,
} from "../../state/overlaps";
import { layerIn, runs, shownRuns, viewedSteps } from "../../state/runs";
import { other, runName, update } from "../../state/store";
import css from "../../style/compare.css";
import { type CsvFile, runFiles, type View } from "../view";
import { LayersPanel } from "./layers";
import { MatrixPanel } from "./matrix";
import { SidePanel } from "./sidebyside";

/** What makes the runs' numbers differ for a reason that isn't theirs. */
function Notes() {
  const [a, b] = pairRuns.value!;
  const more = shownRuns.value.length - MOST_RUNS;
  return (
    <>
      {more > 0 ? (
        <p class="note">
          The first {MOST_RUNS} of {shownRuns.value.length} shown runs are compared; the filter for runs picks others.
        </p>
      ) : null}
      {a.past !== b.past ? (
        <p class="note">
          Δ of {a.name} compares with {pastText(a.past)}, that of {b.name} with {pastText(b.past)}: their Δ can't be
          compared. Masks can.
        </p>
      ) : null}
    </>
  );
}

/** Opens on what there is to see: where B isn't chosen, on the runs that differ most. */
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
    const untold = runs.value.length > 1 ? "Tick another run on the left" : "Record a second run";
    return (
      <section class="panel" aria-label="Compare">
        <p class="message">
          Two runs are needed to compare their masks; {shownRuns.value.length === 1 ? "one is" : "none is"} shown.{" "}
          {untold}, or change the filter for runs.
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
        <Notes />
        <SidePanel pair={pair} />
      </section>
    </div>
  );
}

const pairsCsv = ({ runs, pairs, step, unit, mask }: OverlapAnswer): string =>
  toCsv(pairs.map(({ a, b, ...rest }) => ({ run: runs[a].name, other: runs[b].name, step, unit, mask, ...rest })));

const layersCsv = ({ step, layers }: LayerOverlaps): string =>
  toCsv([...layers].map(([layer, numbers]) => ({ step, layer, ...numbers })));

/** The files that the download menu offers, as far as their data is there. */
function overlapFiles(): CsvFile[] {
  const pair = pairRuns.value;
  if (!pair) return [];
  const [answer, overlaps] = [overlapOf().value, layerOverlapsAt(pair, cursor.value)];
  const files: CsvFile[] = [];
  if (answer) files.push({ title: "CSV of all pairs", name: ["overlap"], source: () => pairsCsv(answer) });
  if (overlaps) files.push({ title: "CSV by layer", name: ["overlap_layers"], source: () => layersCsv(overlaps) });
  return files;
}

export const compare: View = {
  component: CompareView,
  css,
  steps() {
    const id = pairLayer.value?.id;
    const lists = (pairRuns.value ?? []).flatMap((run) => {
      const cells = id !== undefined && layerIn(run, id) ? cellsOf(run.name, id).value : null;
      return cells ? [cells.steps] : [];
    });
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
  files: () => [...overlapFiles(), ...runFiles(pairRuns.value ?? [], pairLayer.value?.id ?? null)],
};
