/** The Findings view: what there is to know before anybody asks, each with a link to the picture that shows it. */

import { formatCount, plural } from "../../data/format";
import { toCsv } from "../../data/overlap";
import { Failure, Marker, Select, Skeleton } from "../../parts/widgets";
import type { Finding } from "../../server/types";
import {
  FINDING_ORDERS,
  findingOrder,
  findingsAwaited,
  findingsError,
  openFinding,
  shownFindings,
} from "../../state/findings";
import { stepRun } from "../../state/navigate";
import { activeLayer, runNamed, shownRuns, viewedSteps } from "../../state/runs";
import { focusFinding, page } from "../../state/store";
import css from "../../style/findings.css";
import type { View } from "../view";

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

function FindingsView() {
  const list = shownFindings.value;
  const awaited = findingsAwaited.value;
  const message =
    shownRuns.value.length === 0
      ? "No runs selected. Tick a run on the left."
      : "Nothing to report: no layer is frozen, pruned, settled or stalled, and no record is missing.";
  return (
    <section class="panel findings" aria-label="Findings: what the runs did">
      <div class="panel-line">
        <h1>What happened?</h1>
        <span class="sub">
          {list.length > 0 ? plural(list.length, "finding") : ""}
          {awaited > 0 ? ` · reading ${plural(awaited, "more run")}…` : ""}
        </span>
        <div class="spring" />
        <Select
          label="Order of the findings"
          value={findingOrder.value}
          options={FINDING_ORDERS.map((order) => [order, `Sort: ${order}`])}
          onPick={(order) => {
            findingOrder.value = order;
          }}
        />
      </div>
      {findingsError.value ? <Failure text={findingsError.value} /> : null}
      {awaited > 0 && list.length === 0 ? <Skeleton height={320} /> : null}
      {awaited === 0 && list.length === 0 ? <p class="message">{message}</p> : null}
      <ol class="finding-list">
        {list.map((finding, place) => (
          <Line key={`${finding.run} ${finding.kind} ${finding.text}`} finding={finding} place={place} />
        ))}
      </ol>
    </section>
  );
}

export const findings: View = {
  component: FindingsView,
  css,
  steps: () => viewedSteps.value,
  layer: () => activeLayer.value?.id ?? null,
  keys: {
    layer(by) {
      const list = shownFindings.value;
      focusFinding.value = Math.min(list.length - 1, Math.max(0, focusFinding.value + by));
    },
    run: (by) => stepRun(shownRuns.value, page.peek().run, by),
    down() {
      const finding = shownFindings.value[focusFinding.value];
      if (finding) openFinding(finding);
    },
    up() {
      focusFinding.value = -1;
      return true;
    },
  },
  speak() {
    const finding = shownFindings.value[focusFinding.value];
    return finding ? `${finding.run ?? "All runs"}: ${finding.text}` : "";
  },
  caption: () => "Findings",
  files() {
    if (shownFindings.value.length === 0) return [];
    const lines = () =>
      shownFindings.value.map(({ link: _link, layers, ...rest }) => ({ ...rest, layers: layers.join(" ") }));
    return [{ title: "CSV of the findings", name: ["findings"], source: () => toCsv(lines()) }];
  },
};
