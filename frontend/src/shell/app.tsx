/** The whole page. */

import { createElement } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ABSENT } from "../data/absent";
import { Failure, Guard, Skeleton, Status } from "../parts/widgets";
import type { IndexAnswer } from "../server/types";
import { loading } from "../state/frames";
import { indexOf } from "../state/runs";
import { audit, channel, focusRow, helpOpen, hover, page, sideOpen, spoken, theme, view } from "../state/store";
import { late, loadLate } from "./late";
import { loadViews, shownView, viewOf } from "./parts";
import { Sidebar } from "./sidebar";
import { Toolbar } from "./toolbar";

/** Milliseconds; a shorter wait needs no sign. */
const SOON = 300;

/** Shows that something is loading. */
function Progress() {
  const busy = loading.value;
  const [late, setLate] = useState(false);
  useLayoutEffect(() => {
    if (!busy) return;
    const timer = setTimeout(() => setLate(true), SOON);
    return () => {
      clearTimeout(timer);
      setLate(false);
    };
  }, [busy]);
  return late ? <div class="progress" role="presentation" /> : null;
}

const REST_MS = 400;

/** The polite live region: what the keys led to, read out once they have come to rest. */
function Spoken() {
  const { step, layer, run, other, place } = page.value;
  const key = JSON.stringify([view.value, step, layer, run, other, place, channel.value, focusRow.value]);
  const first = useRef(key);
  useEffect(() => {
    if (key === first.current) return;
    first.current = "";
    const said = spoken.peek();
    const timer = setTimeout(() => {
      // A message of the key itself comes first.
      if (spoken.peek() === said) spoken.value = shownView()?.speak() ?? "";
    }, REST_MS);
    return () => clearTimeout(timer);
  }, [key]);
  return (
    <div class="offscreen" role="status" aria-live="polite">
      {spoken.value}
    </div>
  );
}

/** The chosen view; its part of the page may still be on the way. */
function Shown() {
  const part = viewOf(view.value);
  // Once the first picture is there.
  useEffect(() => {
    if (loading.value) return;
    loadViews();
    loadLate();
  }, [loading.value]);
  if (part instanceof Error) return <Failure text={part.message} onRetry={() => window.location.reload()} />;
  return part ? createElement(part.component, null) : <FirstLoad />;
}

/** Shown instead of each view. */
const NoRecords = () => (
  <p class="message">
    {ABSENT.recorded}. The first record is made at the first step and is on disk two seconds later. This page looks for
    data every 10 seconds.
  </p>
);

/** What an index that is there leads to. */
function Indexed({ index }: { index: IndexAnswer }) {
  if (index.runs.length === 0) return <Nothing index={index} />;
  if (index.runs.every((run) => run.records === 0)) return <NoRecords />;
  return (
    <Guard key={view.value}>
      <Shown />
    </Guard>
  );
}

function Late() {
  if (helpOpen.value || audit.value !== null || hover.value !== null) loadLate();
  return late.value && createElement(late.value.Later, null);
}

/** What teaches where nothing is recorded. */
function Nothing({ index }: { index: IndexAnswer }) {
  loadLate();
  const props = { otherRuns: index.other_runs, warnings: index.warnings };
  return late.value && createElement(late.value.Empty, props);
}

function Content() {
  const answer = indexOf();
  return (
    <>
      <Status of={[["", answer]]} />
      {answer.value ? <Indexed index={answer.value} /> : answer.error ? null : <FirstLoad />}
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

/** Past the runs and the controls: to the first finding, or to the first control of the view. */
function skipToContent(): void {
  const main = document.querySelector("main");
  const first = main?.querySelector(".finding button") ?? main?.querySelector("button, select, input, [tabindex]");
  (first as HTMLElement | null | undefined)?.focus();
}

export function App() {
  const { value: index } = indexOf();
  return (
    <div class={`page ${theme.value.dark ? "dark" : "light"} ${sideOpen.value ? "side" : ""}`}>
      <button type="button" class="skip" onClick={skipToContent}>
        Skip to the content
      </button>
      {index ? <Progress /> : null}
      {!index || index.runs.length > 0 ? <Sidebar /> : null}
      <div class="right">
        {!index || index.runs.length > 0 ? <Toolbar /> : null}
        {index && index.runs.length > 0 && view.value !== "findings" ? (
          <section class="readout" aria-label="Numbers at the cursor">
            {late.value ? createElement(late.value.Readout, null) : null}
          </section>
        ) : null}
        <main>
          <Content />
        </main>
      </div>
      <Late />
      <Spoken />
    </div>
  );
}
