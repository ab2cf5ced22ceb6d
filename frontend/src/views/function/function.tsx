/** The Function view: did the function change, and where? Past network against current one, on the same probe. */

import { CHANGE_TITLES } from "../../data/function";
import { mergeSteps } from "../../data/steps";
import { Failure, Skeleton, Switch } from "../../parts/widgets";
import { cursor } from "../../state/cursor";
import { openLayer, stepRun } from "../../state/navigate";
import {
  activeChange,
  activePlace,
  activeProbed,
  functionOf,
  layerOfPlace,
  listedPlaces,
  offered,
  probed,
  probedRuns,
} from "../../state/probed";
import { page, update } from "../../state/store";
import css from "../../style/function.css";
import { functionFiles, type View } from "../view";
import { FunctionCells } from "./cells";
import { FunctionLines } from "./lines";
import { functionText } from "./place";
import { FunctionProbe, NoProbe } from "./probe";
import { FunctionScatter } from "./scatter";

function Title() {
  return (
    <div class="fn-title">
      <h1>Did the function change, and where?</h1>
      <p class="sub">outputs y of the current network against y′ of the past one, on the same batch</p>
      <Switch
        label="Measure of change"
        options={offered.value}
        titles={CHANGE_TITLES}
        value={activeChange.value}
        onPick={(change) => update({ change })}
      />
    </div>
  );
}

function FunctionView() {
  const entry = activeProbed.value;
  const own = activePlace.value;
  if (probedRuns.value.length === 0) return <NoProbe />;
  const answers = probedRuns.value.map((run) => functionOf(run.name));
  const errors = [...new Set(answers.map(({ error }) => error))].filter((error) => error !== null);
  return (
    <div class="fn-view">
      <Title />
      {errors.map((error) => (
        <Failure key={error} text={error} />
      ))}
      {entry && own ? (
        <div class="fn-columns">
          <div>
            <FunctionLines own={own} />
            <FunctionCells />
          </div>
          <div>
            <FunctionScatter entry={entry} />
            <FunctionProbe entry={entry} />
          </div>
        </div>
      ) : answers.some(({ value, error }) => !value && !error) ? (
        <Skeleton height={420} />
      ) : errors.length === 0 ? (
        <p class="message">The probe has no records yet. They appear here with the first flush of the recorder.</p>
      ) : null}
    </div>
  );
}

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
