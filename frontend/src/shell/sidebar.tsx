/** The side bar: runs, legend, movement scale, threshold, records, keys. */

import { useEffect, useRef } from "preact/hooks";
import { figuresAt as layerFiguresAt } from "../data/cells";
import { formatCount, formatPower, formatShare, plural } from "../data/format";
import { agoText, livenessOf } from "../data/live";
import type { Figures } from "../data/record";
import { scaleTop } from "../data/scale";
import { LEGEND, STATE_HINTS, STATE_NAMES, STATE_TITLES } from "../data/states";
import { movementColor } from "../draw/theme";
import { Marker, RunName } from "../parts/widgets";
import { stepsText } from "../parts/words";
import { cellsOf, overviewOf } from "../state/answers";
import { awaited, figuresAt } from "../state/at";
import { differs } from "../state/baseline";
import { numberSteps, pointedRun } from "../state/followers";
import { begin, finish } from "../state/frames";
import { showOnly, toggleRun } from "../state/navigate";
import {
  activeLayer,
  draftThreshold,
  focusedRun,
  listedRuns,
  patience,
  type Run,
  runs,
  shownRuns,
  threshold,
  totalLayers,
} from "../state/runs";
import { grouping, helpOpen, runFilter, theme, update, view } from "../state/store";
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
  const silent = liveness === "silent" ? `no data for ${agoText(now() - run.wall_time![1])}` : "";
  return (
    <span class="sub">
      {last} · {silent || plural(run.records, "record")}
    </span>
  );
}

function RunItem({ run, compact }: { run: Run; compact: boolean }) {
  const alone = shownRuns.value.length === 1 && run.shown;
  return (
    <li class={compact ? "run compact" : "run"}>
      <label title={run.name}>
        <input type="checkbox" checked={run.shown} onChange={() => toggleRun(run.name)} />
        <span class="run-text">
          <RunName text={compact ? run.short : run.name} />
          {compact ? null : <RunDetail run={run} />}
        </span>
      </label>
      {alone || runs.value.length < 2 ? null : (
        <button type="button" class="tag" aria-label={`Only ${run.name}`} onClick={() => showOnly([run.name])}>
          only
        </button>
      )}
      <BaselineTag run={run} />
      <Marker color={run.color} shape={run.shape} size={13} />
    </li>
  );
}

/** More runs than these are listed in a line each. */
const ROOMY = 8;

function RunList() {
  const listed = listedRuns.value;
  const names = listed.map(({ name }) => name);
  return (
    <>
      {runs.value.length > 1 ? (
        <div class="runs-head sub">
          {formatCount(shownRuns.value.length)} of {plural(runs.value.length, "run")}
          <span class="spring" />
          <button type="button" class="plain linked" onClick={() => showOnly(names)}>
            All
          </button>
          <button type="button" class="plain linked" onClick={() => showOnly([])}>
            None
          </button>
        </div>
      ) : null}
      <ul class="runs" aria-label="Runs">
        {listed.map((run) => (
          <RunItem key={run.name} run={run} compact={listed.length > ROOMY} />
        ))}
      </ul>
      {runs.value.length > 2 ? (
        <FilterBox
          label="Group seeds, as by _s\d+$"
          filter={grouping.value}
          onText={(text) => update({ grouping: text })}
          id="run-groups"
        />
      ) : null}
      {listed.length === 0 ? (
        <p class="side-block sub">No run matches; {formatCount(runs.value.length)} are hidden by the filter.</p>
      ) : null}
    </>
  );
}

/** Of the run in focus, all that the view shows of it, at the step under the pointer. */
function legendFigures(run: Run, step: number): Figures | null {
  if (view.value !== "layer") return figuresAt(run, totalLayers.value, step);
  const cells = activeLayer.value && cellsOf(run.name, activeLayer.value.id).value;
  return cells && layerFiguresAt(cells, step);
}

function Legend() {
  const run = pointedRun.value ?? focusedRun.value;
  const figures = run && legendFigures(run, numberSteps[0].value);
  return (
    <details class="side-block" aria-label="Channel states" open>
      <summary>
        <h2>
          Channel state{" "}
          {run ? (
            <span class="sub">
              <bdi>{run.short}</bdi>,{" "}
              {figures ? stepsText(figures) : awaited(run, numberSteps[0].value) ? "…" : "no record yet"}
            </span>
          ) : null}
        </h2>
      </summary>
      <ul class="legend">
        {LEGEND.map((state) => (
          <li key={state}>
            <i class={`swatch fill-${STATE_NAMES[state]}`} />
            <span class="legend-text">
              {STATE_TITLES[state]}
              <span class="sub">{STATE_HINTS[state]}</span>
            </span>
            <span class="number">{figures ? formatShare(figures.counts[state], figures.total) : "–"}</span>
          </li>
        ))}
        {figures && figures.violated > 0 ? (
          <li class="warn">
            <i class="swatch fill-violated" />
            <span class="legend-text">
              Violated
              <span class="sub">held weights changed</span>
            </span>
            <span class="number">{formatShare(figures.violated, figures.total)}</span>
          </li>
        ) : null}
        {figures && figures.nonfinite > 0 ? (
          <li>
            <i class="swatch fill-nonfinite" />
            <span class="legend-text">
              Non-finite
              <span class="sub">channels with NaN or infinity</span>
            </span>
            <span class="number">{formatShare(figures.nonfinite, figures.total)}</span>
          </li>
        ) : null}
      </ul>
    </details>
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
        Relative change per step (Δ) <span class="sub">‖w − w_past‖ / ‖w_past‖</span>
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

/** The distribution of Δ of the run in focus, over the slider: its part below the threshold is settled before long. */
function Deltas({ run, at }: { run: Run; at: number }) {
  const found = overviewOf(run.name).value?.header.deltas;
  if (!found) return <div class="deltas" />;
  const { from, to, counts } = found;
  const most = Math.max(1, ...counts);
  const below = ((Math.log10(at) - from) / (to - from)) * counts.length;
  return (
    <div class="deltas" role="img" aria-label={`Distribution of the relative deltas of ${run.name}`}>
      {counts.map((count, bin) => (
        <i key={String(bin)} class={bin < below ? "below" : ""} style={{ height: `${(100 * count) / most}%` }} />
      ))}
    </div>
  );
}

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
        <label for="threshold">Settled below</label>
        <span class="sub">
          Δ &lt; {formatPower(at)} for {patience.value} records
        </span>
      </h2>
      {focusedRun.value ? <Deltas run={focusedRun.value} at={at} /> : null}
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
        <RunList />
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
