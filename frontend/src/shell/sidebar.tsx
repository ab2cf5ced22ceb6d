/** The side bar: runs, legend, threshold, records, keys. */

import { createElement } from "preact";
import { ABSENT } from "../data/absent";
import { formatCount, plural } from "../data/format";
import { agoText, livenessOf } from "../data/live";
import { Marker, RunName } from "../parts/widgets";
import { isBaseline } from "../state/baseline";
import { showOnly, toggleRun } from "../state/navigate";
import { indexOf, listedRuns, type Run, runs, shownRuns } from "../state/runs";
import { helpOpen, update, view } from "../state/store";
import { FilterBox } from "./filterbox";
import { late } from "./late";
import { Legend } from "./legend";

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
          <RunName run={run} />
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

export function Sidebar() {
  return (
    <aside aria-label="Runs and legend">
      <FilterBox id="run-filter" label="Filter runs (regex)" field="runFilter" />
      <div class="side-scroll">
        <RunList />
        {view.value === "function" ? null : <Legend />}
        {late.value ? (
          <>
            {view.value === "function" ? null : createElement(late.value.Scales, null)}
            {createElement(late.value.Records, null)}
          </>
        ) : null}
      </div>
      <footer>
        <button type="button" class="plain" onClick={() => (helpOpen.value = true)}>
          <kbd>?</kbd> all keys
        </button>
      </footer>
    </aside>
  );
}
