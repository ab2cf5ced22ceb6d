/** The Function view as the frame knows it. */

import { mergeSteps } from "../../data/steps";
import { cursor } from "../../state/cursor";
import { openLayer, stepRun } from "../../state/navigate";
import { activePlace, activeProbed, layerOfPlace, listedPlaces, probed, probedRuns } from "../../state/probed";
import { page, update } from "../../state/store";
import css from "../../style/function.css";
import type { View } from "../view";
import { functionFiles } from "../view";
import { FunctionView } from "./function";
import { functionText } from "./tip";

export const functions: View = {
  component: FunctionView,
  css,
  steps: () => mergeSteps(probed.value.map(({ series }) => series.steps)),
  layer: () => layerOfPlace(activePlace.value),
  keys: {
    layer(by) {
      const list = listedPlaces.value;
      const place = list.findIndex((own) => own.id === activePlace.value?.id);
      const next = list[Math.min(list.length - 1, Math.max(0, place + by))];
      if (next) update({ place: next.id });
    },
    run: (by) => stepRun(probedRuns.value, activeProbed.value?.run.name, by),
    down() {
      const layer = layerOfPlace(activePlace.value);
      if (layer !== null) openLayer(layer, activeProbed.value?.run.name ?? null);
    },
    up() {
      if (page.peek().place === null) return false;
      update({ place: null });
      return true;
    },
  },
  speak: () => functionText(activeProbed.value, cursor.value),
  caption: () => `Function · ${activeProbed.value?.run.name ?? ""}`,
  files: () => functionFiles(probedRuns.value),
};
