/** The Compare view as the frame knows it. */

import { mergeSteps } from "../../data/steps";
import { cellsOf } from "../../state/answers";
import { openLayer, stepLayer } from "../../state/navigate";
import { moveCompared, pairLayer, pairLayers, pairRuns, spokenPair } from "../../state/overlaps";
import { layerIn, viewedSteps } from "../../state/runs";
import css from "../../style/compare.css";
import type { View } from "../view";
import { runFiles } from "../view";
import { CompareView } from "./compare";
import { overlapFiles } from "./csv";

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
