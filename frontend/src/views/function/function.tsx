/** The Function view: did the function change, and where? Past network against current one, on the same probe. */

import { ABSENT } from "../../data/absent";
import { formatCount, plural } from "../../data/format";
import { CHANGE_TITLES, probeText } from "../../data/function";
import { FROZEN, PRUNED, QUIET } from "../../data/states";
import { mergeSteps } from "../../data/steps";
import { CopyLines, Notes, RunLabel, Skeleton, Status, Switch } from "../../parts/widgets";
import { pastsText, pastText } from "../../parts/words";
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
  type Probed,
  probed,
  probedRuns,
  unprobedRuns,
} from "../../state/probed";
import { type Run, shownRuns } from "../../state/runs";
import { page, update } from "../../state/store";
import css from "../../style/function.css";
import { functionFiles, type View } from "../view";
import { FunctionCells } from "./cells";
import { FunctionLines } from "./lines";
import { functionText } from "./place";
import { FunctionScatter } from "./scatter";

const LINES = [
  "probe = x_test[:32]  # any fixed batch",
  'callback = pastnet.PastNetCallback("runs/a", every=10, probe=probe)',
  "model.fit(x, y, callbacks=[callback])",
];

const names = (list: readonly Run[]): string => list.map(({ short }) => short).join(", ");

/** How to record a probe, where one of the runs could have, or none is shown. */
function How() {
  const without = unprobedRuns.value;
  if (without.length > 0 && !without.some((run) => run.can_probe)) {
    return <p>Only Keras models on TensorFlow can record a probe; these runs weren't recorded that way.</p>;
  }
  return (
    <>
      <p>Three lines record it for a Keras model on TensorFlow:</p>
      <CopyLines lines={LINES} what="three lines" />
      <p>
        A <code>Recorder</code> in your own loop takes the same <code>probe=</code>. The probe doesn't affect training:
        losses and weights stay bit-identical.
      </p>
    </>
  );
}

/** Shown instead of the view when no shown run has a probe. */
function NoProbe() {
  if (shownRuns.value.length === 0) {
    return <p class="message">{ABSENT.runs}. Tick a run on the left, or change the filter for runs.</p>;
  }
  return (
    <div class="empty">
      <h1>{ABSENT.probe}</h1>
      <p>
        This view shows how far the outputs of the network and of each layer moved, from the past network to the current
        one, on the same batch.
      </p>
      <How />
      <p>{`Selected runs without a probe: ${names(unprobedRuns.value)}.`}</p>
    </div>
  );
}

function FunctionProbe({ entry: { run, series } }: { entry: Probed }) {
  const { header, steps } = series;
  const without = unprobedRuns.value;
  const lags = new Set(header.past === "previous" ? steps.map((step, record) => step - series.pastSteps[record]) : []);
  const batches = new Set(probed.value.map((other) => JSON.stringify(other.series.header.probe)));
  return (
    <section class="panel fn-panel fn-probe" aria-label="Probe">
      <header>
        <h2>Probe</h2>
        <RunLabel run={run} />
      </header>
      <ul>
        {probeText(header.probe).map((text) => (
          <li key={text}>{text}</li>
        ))}
        <li>
          Compared with {lags.size > 1 ? "earlier steps, which each record shows" : pastText(header.past, [...lags][0])}
        </li>
        <li>
          {plural(steps.length, "record")}, steps {formatCount(steps[0])} to {formatCount(steps[steps.length - 1])}, of{" "}
          {plural(header.places.length, "place")}
        </li>
        {header.changed.length > 0 ? (
          <li>Different batch from step {header.changed.map(formatCount).join(", ")} on</li>
        ) : null}
      </ul>
      <Notes
        texts={[
          pastsText(probedRuns.value),
          batches.size > 1 && "The runs used different batches for the probe: compare them with care.",
          ...header.notes.map(({ text, count }) => `${text} (${plural(count, "time")})`),
        ]}
      />
      {without.length > 0 ? (
        <details>
          <summary>
            {plural(without.length, "selected run")} without a probe: {names(without)}
          </summary>
          <How />
        </details>
      ) : null}
    </section>
  );
}

function Title() {
  return (
    <div class="fn-title">
      <h1>Did the function change, and where?</h1>
      <p class="sub">outputs y of the current network vs y′ of the past network, on the same batch</p>
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
  const answers = probedRuns.value.map((run) => [run.name, functionOf(run.name)] as const);
  const pending = answers.some(([, { value, error }]) => !value && !error);
  return (
    <div class="fn-view">
      <Title />
      <Status of={answers} />
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
      ) : pending ? (
        <Skeleton height={420} />
      ) : answers.every(([, { value }]) => value) ? (
        <p class="message">{ABSENT.probed}. They appear once the recorder first writes to disk.</p>
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
  states: [QUIET, FROZEN, PRUNED],
  files: () => functionFiles(probedRuns.value),
};
