/** The Findings view: what there is to know before anybody asks, each with a link to the picture that shows it. */

import { formatCount, plural } from "../../data/format";
import { Failure, Marker, Skeleton } from "../../parts/widgets";
import type { Finding } from "../../server/types";
import {
  FINDING_ORDERS,
  type FindingOrder,
  findingOrder,
  findingsAwaited,
  findingsError,
  openFinding,
  shownFindings,
} from "../../state/findings";
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
              <Marker color={run.color} shape={run.shape} /> <bdi title={run.name}>{run.short}</bdi>
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
  const list = shownFindings.value;
  const awaited = findingsAwaited.value;
  return (
    <section class="panel findings" aria-label="Findings: what the runs did">
      <div class="panel-line">
        <h1>What happened?</h1>
        <span class="sub">
          {list.length > 0 ? plural(list.length, "finding") : ""}
          {awaited > 0 ? ` · reading ${plural(awaited, "more run")}…` : ""}
        </span>
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
      {findingsError.value ? <Failure text={findingsError.value} /> : null}
      {awaited > 0 && list.length === 0 ? <Skeleton height={320} /> : null}
      {awaited === 0 && list.length === 0 ? <Message /> : null}
      <ol class="finding-list">
        {list.map((finding, place) => (
          <Line key={`${finding.run} ${finding.kind} ${finding.text}`} finding={finding} place={place} />
        ))}
      </ol>
    </section>
  );
}
