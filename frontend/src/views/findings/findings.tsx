/** The Findings view: what there is to know before anybody asks, each with a link to the picture that shows it. */

import { formatCount, plural } from "../../data/format";
import { Marker, Waiting } from "../../parts/widgets";
import type { Finding } from "../../server/types";
import { findingsOf } from "../../state/answers";
import { FINDING_ORDERS, type FindingOrder, findingOrder, openFinding, shownFindings } from "../../state/findings";
import { runNamed, shownRuns } from "../../state/runs";
import { focusFinding } from "../../state/store";

const ORDER_TITLES: Record<FindingOrder, string> = {
  importance: "importance",
  run: "run",
  step: "step",
  kind: "kind",
};

function Line({ finding, place }: { finding: Finding; place: number }) {
  const run = runNamed(finding.run);
  return (
    <li class={`finding ${finding.kind} ${place === focusFinding.value ? "on" : ""}`}>
      <button type="button" class="plain" onClick={() => openFinding(finding)}>
        <span class="finding-run">
          {run ? (
            <>
              <Marker color={run.color} shape={run.shape} /> <bdi>{run.name}</bdi>
            </>
          ) : (
            "All runs"
          )}
        </span>
        <span class="finding-text">
          <bdi>{finding.text}</bdi>
        </span>
        <span class="sub number">{finding.step === null ? "" : `step ${formatCount(finding.step)}`}</span>
      </button>
    </li>
  );
}

function Message() {
  if (shownRuns.value.length === 0) return <p class="message">No runs selected. Tick a run on the left.</p>;
  return (
    <p class="message">Nothing to report: no layer is frozen, pruned, settled or stalled, and no record is missing.</p>
  );
}

export function FindingsView() {
  const answer = findingsOf();
  const list = shownFindings.value;
  return (
    <section class="panel findings" aria-label="Findings: what the runs did">
      <div class="panel-line">
        <h1>What happened?</h1>
        <span class="sub">{answer.value ? plural(list.length, "finding") : ""}</span>
        <div class="spring" />
        <select
          aria-label="Order of the findings"
          value={findingOrder.value}
          onChange={(event) => (findingOrder.value = event.currentTarget.value as FindingOrder)}
        >
          {FINDING_ORDERS.map((order) => (
            <option key={order} value={order}>
              Sort: {ORDER_TITLES[order]}
            </option>
          ))}
        </select>
      </div>
      <Waiting found={answer} height={320} />
      {answer.value && list.length === 0 ? <Message /> : null}
      <ol class="finding-list">
        {list.map((finding, place) => (
          <Line key={`${finding.run} ${finding.kind} ${finding.text}`} finding={finding} place={place} />
        ))}
      </ol>
    </section>
  );
}
