/** The side bar: runs, legend, movement scale, threshold, records, keys. */

import { useEffect, useRef } from "preact/hooks";
import { movementColor } from "../../draw/palette";
import { seriesOf } from "../../model/cells";
import { scaleTop } from "../../model/delta";
import { formatCount, formatPower, formatShare, plural } from "../../model/format";
import { agoText, livenessOf } from "../../model/live";
import { sumOf } from "../../model/overview";
import { addReadouts, readAt } from "../../model/series";
import { LEGEND, STATE_HINTS, STATE_NAMES, STATE_TITLES } from "../../model/states";
import { Icon, Marker, RunName } from "../shared/bits";
import { toggleRun } from "../state/actions";
import { differs } from "../state/baseline";
import {
  activeLayer,
  cellsOf,
  draftThreshold,
  layerIn,
  listedRuns,
  patience,
  type Run,
  rows,
  runs,
  shownRuns,
  threshold,
} from "../state/data";
import { overviewAt } from "../state/detail";
import { numberSteps } from "../state/followers";
import { begin, finish } from "../state/idle";
import { helpOpen, runFilter, theme, update, view } from "../state/store";
import { FilterBox } from "./filterbox";
import { Records } from "./records";
import { BaselineTag, VersusScale } from "./versus";

const now = (): number => Date.now() / 1000;

/** Where a run stands, and whether it goes on. */
function RunDetail({ run }: { run: Run }) {
  if (run.records === 0) return <span class="sub">no records yet</span>;
  const last = `step ${formatCount(run.last_step ?? 0)}`;
  const liveness = livenessOf(run, now());
  if (liveness === "live") {
    return (
      <span class="sub">
        <i class="live" /> live · {last}
      </span>
    );
  }
  const silent = liveness === "silent" ? `silent for ${agoText(now() - run.wall_time![1])}` : "";
  return (
    <span class="sub">
      {last} · {silent || plural(run.records, "record")}
    </span>
  );
}

function RunItem({ run }: { run: Run }) {
  return (
    <li class="run">
      <label title={run.name}>
        <input type="checkbox" checked={run.shown} onChange={() => toggleRun(run.name)} />
        <span class="run-text">
          <RunName text={run.name} />
          <RunDetail run={run} />
        </span>
      </label>
      <BaselineTag run={run} />
      <Marker color={run.color} shape={run.shape} size={13} />
    </li>
  );
}

/** Readout of everything that the view shows, at the step under the pointer. */
function overall() {
  const step = numberSteps[0].value;
  if (view.value === "layer") {
    const id = activeLayer.value?.id;
    return addReadouts(
      shownRuns.value.map((run) => {
        const cells = id !== undefined && layerIn(run, id) ? cellsOf(run.name, id).value : null;
        return cells ? readAt(seriesOf(cells), step) : null;
      }),
    );
  }
  return addReadouts(
    shownRuns.value.map((run) => {
      const overview = overviewAt(run.name, step);
      const series = overview && sumOf(overview, rows.value[0]?.layers ?? []);
      return series ? readAt(series, step) : null;
    }),
  );
}

function Legend() {
  const readout = overall();
  return (
    <section class="side-block" aria-label="Channel states">
      <h2>
        Channel state <span class="sub">all runs, step {formatCount(numberSteps[0].value)}</span>
      </h2>
      <ul class="legend">
        {LEGEND.map((state) => (
          <li key={state}>
            <i class={`swatch fill-${STATE_NAMES[state]}`} />
            <span class="legend-text">
              {STATE_TITLES[state]}
              <span class="sub">{STATE_HINTS[state]}</span>
            </span>
            <span class="number">{readout ? formatShare(readout.counts[state], readout.total) : "–"}</span>
          </li>
        ))}
        {readout && readout.violated > 0 ? (
          <li class="warn">
            <Icon name="warning" size={20} />
            <span class="legend-text">
              Violated
              <span class="sub">held weights moved</span>
            </span>
            <span class="number">{formatShare(readout.violated, readout.total)}</span>
          </li>
        ) : null}
        {readout && readout.nonfinite > 0 ? (
          <li>
            <i class="swatch" />
            <span class="legend-text">
              Not finite
              <span class="sub">channels with NaN or infinity</span>
            </span>
            <span class="number">{formatShare(readout.nonfinite, readout.total)}</span>
          </li>
        ) : null}
      </ul>
    </section>
  );
}

function MovementScale() {
  const at = draftThreshold.value ?? threshold.value;
  const top = Math.log10(scaleTop(at));
  const last = Math.floor(top + 1e-9);
  const decades = Math.round(last - Math.log10(at));
  const every = Math.max(1, Math.ceil(decades / 4));
  const ticks = Array.from({ length: decades + 1 }, (_, i) => last - i).filter((d) => (last - d) % every === 0);
  const stops = Array.from({ length: 9 }, (_, i) => movementColor(theme.value, i / 8)).join(", ");
  const place = (exponent: number) => (100 * (exponent - Math.log10(at))) / (top - Math.log10(at));
  return (
    <section class="side-block" aria-label="Movement scale">
      <h2>
        Movement Δ <span class="sub">‖w − w_past‖ / ‖w_past‖</span>
      </h2>
      <div class="gradient" style={{ background: `linear-gradient(to right, ${stops})` }} />
      <div class="gradient-axis" aria-hidden="true">
        {ticks
          .map((exponent) => ({ exponent, left: place(exponent) }))
          .filter(({ left }) => left > -1)
          .map(({ exponent, left }) => (
            <span key={exponent} class={left < 6 ? "start" : left > 94 ? "end" : ""} style={{ left: `${left}%` }}>
              {left > 99 ? "≥ " : ""}
              {formatPower(10 ** exponent)}
            </span>
          ))}
      </div>
    </section>
  );
}

const LOWEST = -7;
const HIGHEST = -1;

function Threshold() {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const at = draftThreshold.value ?? threshold.value;
  const commit = (value: number) => {
    draftThreshold.value = value;
    if (timer.current !== undefined) {
      clearTimeout(timer.current);
      finish();
    }
    begin();
    timer.current = setTimeout(() => {
      timer.current = undefined;
      update({ threshold: value });
      draftThreshold.value = null;
      finish();
    }, 250);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  return (
    <section class="side-block" aria-label="Threshold">
      <h2>
        <label for="threshold">Settled when</label>
        <span class="sub">
          Δ &lt; {formatPower(at)} for {patience.value} records
        </span>
      </h2>
      <input
        id="threshold"
        type="range"
        min={LOWEST}
        max={HIGHEST}
        step="0.1"
        value={Math.log10(at)}
        aria-valuetext={`relative delta under ${formatPower(at)}`}
        onInput={(event) => commit(Number((10 ** Number(event.currentTarget.value)).toPrecision(3)))}
      />
    </section>
  );
}

export function Sidebar() {
  return (
    <aside aria-label="Runs and legend">
      <FilterBox
        label="Filter runs (regex)"
        filter={runFilter.value}
        onText={(text) => update({ runFilter: text })}
        id="run-filter"
      />
      <div class="side-scroll">
        <ul class="runs" aria-label="Runs">
          {listedRuns.value.map((run) => (
            <RunItem key={run.name} run={run} />
          ))}
        </ul>
        {listedRuns.value.length === 0 ? (
          <p class="side-block sub">No run matches; {formatCount(runs.value.length)} are hidden by the filter.</p>
        ) : null}
        <Legend />
        <VersusScale />
        {differs.value && view.value === "network" ? null : <MovementScale />}
        <Threshold />
        <Records />
      </div>
      <footer>
        <kbd>←</kbd> <kbd>→</kbd> step <kbd>J</kbd> <kbd>K</kbd> layer <kbd>Enter</kbd> open <kbd>P</kbd> pin{" "}
        <kbd>D</kbd> difference with baseline{" "}
        <button type="button" class="plain" onClick={() => (helpOpen.value = true)}>
          <kbd>?</kbd> all keys
        </button>
      </footer>
    </aside>
  );
}
