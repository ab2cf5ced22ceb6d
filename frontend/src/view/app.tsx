/** The whole page. */

import { createElement } from "preact";
import { useEffect } from "preact/hooks";
import { formatCount } from "../model/format";
import { sumOf } from "../model/overview";
import { readAt } from "../model/series";
import { Failure, Guard, Skeleton } from "./bits";
import { spokenPair } from "./comparedata";
import { cursor } from "./cursor";
import { activeLayer, activeRun, cellSeries, cellsOf, indexOf, overviewOf, rows, shownRuns } from "./data";
import { Empty } from "./empty";
import { activeProbed } from "./functiondata";
import { functionText } from "./functiontip";
import { Help } from "./help";
import { pending } from "./idle";
import { loadViews, partOf } from "./parts";
import { Sidebar } from "./sidebar";
import { layerId, other, runName, sideOpen, spoken, step, theme, view } from "./store";
import { Toolbar } from "./toolbar";
import { Tooltip } from "./tooltip";
import { ViolationsList } from "./violations";
import { sharesText } from "./words";

/** The shares at the cursor, read out after the keys have come to rest. */
function Spoken() {
  const at = step.value;
  const compared = view.value === "compare" ? `${layerId.value} ${runName.value} ${other.value}` : "";
  const layer = view.value === "layer" ? activeLayer.value?.id : undefined;
  const own = view.value === "function" ? functionText(activeProbed.value, cursor.value) : undefined;
  useEffect(() => {
    if (at === null && !compared && own === undefined) return;
    const timer = setTimeout(() => {
      if (compared || own !== undefined) {
        spoken.value = own ?? spokenPair();
        return;
      }
      const run = view.peek() === "layer" ? activeRun.peek() : shownRuns.peek()[0];
      if (!run) return;
      const cells = layer !== undefined ? cellsOf(run.name, layer).value : null;
      const overview = overviewOf(run.name).value;
      const series = cells ? cellSeries(cells) : overview && sumOf(overview, rows.peek()[0]?.layers ?? []);
      if (series)
        spoken.value = `Step ${formatCount(cursor.peek())}, ${run.name}: ${sharesText(readAt(series, cursor.peek()))}`;
    }, 400);
    return () => clearTimeout(timer);
  }, [at, layer, compared, own]);
  return (
    <div class="offscreen" role="status" aria-live="polite">
      {spoken.value}
    </div>
  );
}

/** The chosen view; its part of the page may still be on the way. */
function Shown() {
  const part = partOf(view.value);
  // Once the first picture is there.
  useEffect(() => {
    if (pending.value === 0) loadViews();
  }, [pending.value === 0]);
  if (part instanceof Error) return <Failure text={part.message} onRetry={() => window.location.reload()} />;
  return part ? createElement(part, null) : <FirstLoad />;
}

function Content() {
  const { value: index, error } = indexOf();
  if (!index) return error ? <Failure text={error} /> : <FirstLoad />;
  if (index.runs.length === 0) return <Empty otherRuns={index.other_runs} warnings={index.warnings} />;
  return (
    <>
      {error ? <Failure text={error} /> : null}
      <Guard key={view.value}>
        <Shown />
      </Guard>
    </>
  );
}

function FirstLoad() {
  return (
    <div class="panel first-load" aria-busy="true">
      <span class="offscreen">Loading</span>
      {[1, 2, 3, 4, 5, 6].map((line) => (
        <Skeleton key={line} height={line === 1 ? 60 : 34} />
      ))}
    </div>
  );
}

export function App() {
  const { value: index } = indexOf();
  return (
    <div class={`page ${theme.value.dark ? "dark" : "light"} ${sideOpen.value ? "side" : ""}`}>
      {pending.value > 0 && index ? <div class="progress" role="presentation" /> : null}
      {!index || index.runs.length > 0 ? <Sidebar /> : null}
      <div class="right">
        {!index || index.runs.length > 0 ? <Toolbar /> : null}
        <main>
          <Content />
        </main>
      </div>
      <Tooltip />
      <ViolationsList />
      <Help />
      <Spoken />
    </div>
  );
}
