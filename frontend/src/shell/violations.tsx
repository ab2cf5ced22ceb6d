/** The list of a run's violations: which held weights moved, since when, how far and why. */

import { signal } from "@preact/signals";
import { ABSENT } from "../data/absent";
import { formatCount } from "../data/format";
import { COLUMN_NAMES, COLUMNS, type Column, sortViolations, summaryText } from "../data/violations";
import { Button, Icon, Marker, Select, Waiting } from "../parts/widgets";
import type { Violation, ViolationsAnswer } from "../server/types";
import { violationsOf } from "../state/answers";
import { openListed } from "../state/navigate";
import { layerIn, type Run, shownRuns } from "../state/runs";
import { audit, update } from "../state/store";
import { useDialog } from "./dialog";

/** More rows than this are not drawn. */
const LIMIT = 1000;

const order = signal<{ by: Column; descending: boolean }>({ by: "first", descending: false });

function Head() {
  const { by, descending } = order.value;
  return (
    <thead>
      <tr>
        {COLUMN_NAMES.map((column) => (
          <th
            key={column}
            scope="col"
            class={COLUMNS[column].style && "text"}
            aria-sort={column !== by ? "none" : descending ? "descending" : "ascending"}
          >
            <button
              type="button"
              class="plain"
              onClick={() => (order.value = { by: column, descending: column === by && !descending })}
            >
              {COLUMNS[column].title}
              <span class="sort-mark" aria-hidden="true">
                {column !== by ? "" : descending ? "▼" : "▲"}
              </span>
            </button>
          </th>
        ))}
      </tr>
    </thead>
  );
}

/** The channel, which a click opens where the run has recorded it. */
function Channel({ run, entry }: { run: Run; entry: Violation }) {
  const recorded = layerIn(run, entry.layer)?.variables.some((variable) => variable.id === entry.variable);
  const text = COLUMNS.channel.text(entry);
  if (!recorded) return <th scope="row">{text}</th>;
  return (
    <th scope="row">
      <button
        type="button"
        class="plain linked"
        aria-label={`Channel ${entry.channel} of ${entry.variable}: open it at step ${formatCount(entry.first_step)}`}
        onClick={() => openListed(run, entry)}
      >
        {text}
      </button>
    </th>
  );
}

const Line = ({ run, entry }: { run: Run; entry: Violation }) => (
  <tr title={entry.text}>
    {COLUMN_NAMES.map((column) => {
      if (column === "channel") return <Channel key={column} run={run} entry={entry} />;
      const { style, text } = COLUMNS[column];
      return (
        <td key={column} class={style}>
          {style === "text long" ? <bdi>{text(entry)}</bdi> : text(entry)}
        </td>
      );
    })}
  </tr>
);

function Table({ run, answer }: { run: Run; answer: ViolationsAnswer }) {
  const { by, descending } = order.value;
  const list = sortViolations(answer.violations, by, descending);
  const drawn = Math.min(LIMIT, list.length);
  return (
    <>
      <p class="audit-summary">
        {summaryText(list)}
        {drawn < answer.total ? ` ${formatCount(drawn)} of ${formatCount(answer.total)} are listed.` : ""}
      </p>
      <div class="table-scroll" role="region" aria-label={`Violations in ${run.name}`} tabIndex={0}>
        <table>
          <caption class="offscreen">Violations in {run.name}</caption>
          <Head />
          <tbody>
            {list.slice(0, LIMIT).map((entry) => (
              <Line key={`${entry.variable} ${entry.channel} ${entry.first_step}`} run={run} entry={entry} />
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Content({ run }: { run: Run }) {
  const answer = violationsOf(run.name);
  const { value } = answer;
  return (
    <>
      <Waiting answer={answer} height={200} />
      {value && value.violations.length > 0 ? <Table run={run} answer={value} /> : null}
      {value?.violations.length === 0 ? (
        <p class="audit-none">
          <Icon name="check" /> {ABSENT.violations}: all frozen and pruned weights stayed put.
        </p>
      ) : null}
    </>
  );
}

function Choice({ run }: { run: Run }) {
  return (
    <>
      <Marker color={run.color} shape={run.shape} />
      {shownRuns.value.length > 1 ? (
        <Select
          label="Run whose violations are listed"
          title={run.name}
          value={run.name}
          options={shownRuns.value.map(({ name, short }) => [name, short])}
          onPick={(name) => update({ audit: name })}
        />
      ) : (
        <bdi class="path">
          <span class="name">{run.name}</span>
        </bdi>
      )}
    </>
  );
}

export function ViolationsList() {
  const run = shownRuns.value.find((other) => other.name === audit.value);
  const open = run !== undefined;
  const ref = useDialog(open);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it too
    <dialog
      ref={ref}
      class="audit"
      aria-labelledby="audit-title"
      // The event is late, and the user isn't its only cause: a change of the URL may have closed the list, or opened
      // it again.
      onClose={() => open && !ref.current?.open && update({ audit: null })}
      onClick={(event) => event.target === ref.current && update({ audit: null })}
    >
      {run ? (
        <div class="audit-inner">
          <header>
            <h2 id="audit-title" tabIndex={-1}>
              Violations
            </h2>
            <Choice run={run} />
            <span class="spring" />
            <Button class="small" label="Close the list (Esc)" onClick={() => update({ audit: null })}>
              <Icon name="close" size={16} />
            </Button>
          </header>
          <Content run={run} />
        </div>
      ) : null}
    </dialog>
  );
}
