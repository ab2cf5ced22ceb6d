/** The side bar: runs, legend, threshold, records, keys. */

import { useEffect, useRef } from "preact/hooks";
import { ABSENT } from "../data/absent";
import { formatCount, formatPower, plural } from "../data/format";
import { agoText, livenessOf } from "../data/live";
import { Lost, Marker, OldSign, RunName } from "../parts/widgets";
import { overviewOf } from "../state/answers";
import { differs, isBaseline } from "../state/baseline";
import { begin, finish } from "../state/frames";
import { showOnly, toggleRun } from "../state/navigate";
import {
  draftThreshold,
  focusedRun,
  indexOf,
  listedRuns,
  patience,
  type Run,
  runs,
  shownRuns,
  threshold,
} from "../state/runs";
import { helpOpen, update, view } from "../state/store";
import { FilterBox } from "./filterbox";
import { Legend, MovementScale, VersusScale } from "./legend";
import { Records } from "./records";

/** How far a run is, and whether it is still recording. */
function RunDetail({ run }: { run: Run }) {
  if (run.records === 0) return <span class="sub">{ABSENT.records}</span>;
  const last = `step ${formatCount(run.last_step ?? 0)}`;
  // When the index came: while the server is gone, runs may continue.
  const now = indexOf().at / 1000;
  const liveness = livenessOf(run, now);
  const live = liveness === "live";
  const silent = liveness === "silent" && `no data for ${agoText(now - run.wall_time![1])}`;
  return (
    <span class="sub">
      {live ? <i class="live" /> : null}
      {live ? ` live · ${last}` : `${last} · ${silent || plural(run.records, "record")}`}
    </span>
  );
}

/** Marks the baseline, and makes another run the baseline. */
function BaselineTag({ run }: { run: Run }) {
  if (runs.value.length < 2 || run.records === 0) return null;
  const own = isBaseline(run);
  return (
    <button
      type="button"
      class="tag"
      aria-pressed={own}
      aria-label={`Baseline: ${run.name}`}
      title={own ? "Other runs are compared with this one" : "Compare other runs with this one"}
      onClick={() => update({ baseline: run.name })}
    >
      baseline
    </button>
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
      <span class="tags">
        {alone || runs.value.length < 2 ? null : (
          <button
            type="button"
            class="tag"
            aria-label={`Only ${run.name}`}
            onClick={({ currentTarget }) => {
              // The button goes away, and would take the focus with it.
              currentTarget.closest("li")?.querySelector("input")?.focus();
              showOnly([run.name]);
            }}
          >
            only
          </button>
        )}
        <BaselineTag run={run} />
      </span>
      <Marker color={run.color} shape={run.shape} size={13} />
    </li>
  );
}

/** More runs than these are listed in a line each. */
const ROOMY = 8;

function RunList() {
  const listed = listedRuns.value;
  return (
    <>
      {runs.value.length > 1 ? (
        <div class="runs-head sub">
          {formatCount(shownRuns.value.length)} of {plural(runs.value.length, "run")}
          <span class="spring" />
          <button type="button" class="plain linked" onClick={() => showOnly(listed.map(({ name }) => name))}>
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
      {runs.value.length > 2 ? <FilterBox id="run-groups" label="Group seeds, e.g. _s\d+$" field="grouping" /> : null}
      {listed.length === 0 && runs.value.length > 0 ? (
        <p class="side-block sub">
          {ABSENT.run}; the filter hides all {formatCount(runs.value.length)}.
        </p>
      ) : null}
    </>
  );
}

/**
 * The distribution of Δ of the run in focus, over the slider: the part below the threshold will soon count as quiet.
 */
function Deltas({ run, at }: { run: Run; at: number }) {
  const { value, error } = overviewOf(run.name);
  const deltas = value?.header.deltas;
  if (!deltas) return <div class="deltas">{error ? <Lost why={error} /> : null}</div>;
  const { from, to, counts } = deltas;
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
        <label for="threshold">Quiet below</label>
        <span class="sub">
          Δ &lt; {formatPower(at)} for {patience.value} records
          <OldSign of={[focusedRun.value && overviewOf(focusedRun.value.name)]} />
        </span>
      </h2>
      {focusedRun.value ? <Deltas run={focusedRun.value} at={at} /> : null}
      <input
        id="threshold"
        type="range"
        min={-7}
        max={-1}
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
      <FilterBox id="run-filter" label="Filter runs (regex)" field="runFilter" />
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
        <kbd>D</kbd> difference from baseline{" "}
        <button type="button" class="plain" onClick={() => (helpOpen.value = true)}>
          <kbd>?</kbd> all keys
        </button>
      </footer>
    </aside>
  );
}
