/** The whole page. */

import { signal } from "@preact/signals";
import { type ComponentType, createElement } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ABSENT } from "../data/absent";
import { plural } from "../data/format";
import { CopyLines, Failure, Guard, Skeleton, Status, Switch } from "../parts/widgets";
import type { IndexAnswer } from "../server/types";
import { begin, finish, loading } from "../state/frames";
import { indexOf } from "../state/runs";
import { audit, channel, focusRow, helpOpen, hover, page, sideOpen, spoken, theme, view } from "../state/store";
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

const IMPORT = "import tb_pastnet as pastnet";

/** What records a training, by what trains. */
const LINES = {
  PyTorch: [IMPORT, 'recorder = pastnet.watch(model, "runs/a", optimizer, every=10)', "...  # your training loop"],
  Keras: [IMPORT, 'callback = pastnet.PastNetCallback("runs/a", every=10)', "model.fit(x, y, callbacks=[callback])"],
  JAX: [
    IMPORT,
    'recorder = pastnet.jax.Recorder("runs/a", params, every=10)',
    "...  # your training loop, and after each update:",
    "recorder.record(step, params)",
    "recorder.close()  # at the end",
  ],
  NumPy: [
    IMPORT,
    'arrays = {"dense/kernel": lambda: kernel}',
    'recorder = pastnet.numpy.Recorder("runs/a", arrays, every=10)',
    "...  # your training loop, and after each update:",
    "recorder.record(step)",
    "recorder.close()  # at the end",
  ],
};
type Framework = keyof typeof LINES;
const FRAMEWORKS = Object.keys(LINES) as Framework[];
const TITLES = Object.fromEntries(FRAMEWORKS.map((name) => [name, name])) as Record<Framework, string>;

/** The empty state that teaches. */
function Empty({ otherRuns, warnings }: { otherRuns: number; warnings: string[] }) {
  const [framework, setFramework] = useState<Framework>("PyTorch");
  return (
    <div class="empty">
      <h1>{ABSENT.data}</h1>
      <p>
        This tab shows which channels of a network still learn, which are quiet, and which are frozen or pruned, by step
        and by run. These lines record it:
      </p>
      <Switch label="You train with" options={FRAMEWORKS} titles={TITLES} value={framework} onPick={setFramework} />
      <CopyLines key={framework} lines={LINES[framework]} what="lines" />
      <p>
        Then start TensorBoard with <code>--logdir runs</code>. This page looks for data every 10 seconds.{" "}
        {otherRuns > 0
          ? `TensorBoard found ${plural(otherRuns, "run")} here, none with PastNet data.`
          : "TensorBoard found no runs in this log directory."}
      </p>
      {warnings.map((warning) => (
        <p key={warning} class="note">
          {warning}
        </p>
      ))}
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
    loadLater();
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
  if (index.runs.length === 0) return <Empty otherRuns={index.other_runs} warnings={index.warnings} />;
  if (index.runs.every((run) => run.records === 0)) return <NoRecords />;
  return (
    <Guard key={view.value}>
      <Shown />
    </Guard>
  );
}

const later = signal<ComponentType | null>(null);
let laterAsked = false;

/** Loads the parts that the first picture does without. */
function loadLater(): void {
  if (laterAsked) return;
  laterAsked = true;
  begin();
  const loaded = (part: { Later: ComponentType } | null) => {
    later.value = part?.Later ?? null;
    finish();
  };
  void import("./later").then(loaded, () => loaded(null));
}

function Late() {
  if (helpOpen.value || audit.value !== null || hover.value !== null) loadLater();
  return later.value && createElement(later.value, null);
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
      <Late />
      <Spoken />
    </div>
  );
}
