/** The whole page. */

import { createElement } from "preact";
import { useEffect } from "preact/hooks";
import { Failure, Guard, Skeleton } from "../parts/widgets";
import { loading } from "../state/frames";
import { indexOf } from "../state/runs";
import { sideOpen, theme, view } from "../state/store";
import { Empty } from "./empty";
import { Help } from "./help";
import { loadViews, viewOf } from "./parts";
import { Progress } from "./progress";
import { Sidebar } from "./sidebar";
import { Spoken } from "./spoken";
import { Toolbar } from "./toolbar";
import { Tooltip } from "./tooltip";
import { ViolationsList } from "./violations";

/** The chosen view; its part of the page may still be on the way. */
function Shown() {
  const part = viewOf(view.value);
  // Once the first picture is there.
  useEffect(() => {
    if (!loading.value) loadViews();
  }, [loading.value]);
  if (part instanceof Error) return <Failure text={part.message} onRetry={() => window.location.reload()} />;
  return part ? createElement(part.component, null) : <FirstLoad />;
}

/** In place of each view. */
const NoRecords = () => (
  <p class="message">
    Nothing is recorded yet. The first record comes when training has done as many steps as every= says, and is on disk
    two seconds later. Then reload TensorBoard, at its top right, or let it reload by itself.
  </p>
);

function Content() {
  const { value: index, error } = indexOf();
  if (!index) return error ? <Failure text={error} /> : <FirstLoad />;
  if (index.runs.length === 0) return <Empty otherRuns={index.other_runs} warnings={index.warnings} />;
  if (index.runs.every((run) => run.records === 0)) return <NoRecords />;
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
      {index ? <Progress /> : null}
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
