/** The Findings view: what the runs did, each finding with a link to the picture that shows it. */

import { ABSENT } from "../../data/absent";
import { formatCount, plural } from "../../data/format";
import { toCsv } from "../../data/overlap";
import { Marker, Select, Skeleton, Status } from "../../parts/widgets";
import type { Finding } from "../../server/types";
import {
  allFindings,
  FINDING_ORDERS,
  findingOrder,
  findingsAnswer,
  listedFindings,
  openFinding,
  runsLeftOut,
  shownFindings,
} from "../../state/findings";
import { stepRun } from "../../state/navigate";
import { activeLayer, runNamed, shownRuns, viewedSteps } from "../../state/runs";
import { focusFinding, page } from "../../state/store";
import css from "../../style/findings.css";
import type { View } from "../view";

/** The run of a finding, or how many runs it is about. */
function RunsOf({ names }: { names: readonly string[] }) {
  const runs = names.map(runNamed).filter((run) => run !== null);
  const text = runs.length === 1 ? runs[0].short : plural(names.length, "run");
  return (
    <span class="finding-run">
      {runs.slice(0, 8).map((run) => (
        <span key={run.name} title={run.name}>
          <Marker color={run.color} shape={run.shape} />
        </span>
      ))}
      <bdi title={names.join("\n")}>{text}</bdi>
    </span>
  );
}

/** What was frozen or pruned and compared, run by run: runs with one sentence share a line. */
function Proven() {
  const byText = new Map<string, string[]>();
  const broken = new Set<string>();
  for (const { name, verified } of shownRuns.value) {
    byText.set(verified.text, [...(byText.get(verified.text) ?? []), name]);
    if (verified.changed > 0) broken.add(verified.text);
  }
  return (
    <ul class="finding-list" aria-label="What was verified">
      {[...byText].map(([text, names]) => (
        <li key={text} class={broken.has(text) ? "proven violations" : "proven"}>
          <RunsOf names={names} />
          <span class="finding-text">{text}</span>
        </li>
      ))}
    </ul>
  );
}

function Line({ finding, place }: { finding: Finding; place: number }) {
  return (
    <li class={`finding ${finding.severity} ${finding.kind} ${place === focusFinding.value ? "on" : ""}`}>
      <button type="button" class="plain" onClick={() => openFinding(finding)}>
        <RunsOf names={finding.runs} />
        <span class="finding-text">
          <bdi>{finding.text}</bdi>
        </span>
        <span class="sub number">{finding.first_step === null ? "" : `step ${formatCount(finding.first_step)}`}</span>
      </button>
    </li>
  );
}

/** Why there is nothing to list. */
function emptyText(): string {
  if (shownRuns.value.length === 0) return `${ABSENT.runs}. Tick a run on the left.`;
  if (findingsAnswer.value?.value?.findings.length) return `${ABSENT.finding}. Change the filter for layers.`;
  return `${ABSENT.findings}: no layer is frozen, pruned or unchanged, and no record is missing.`;
}

function FindingsView() {
  const list = shownFindings.value;
  const more = listedFindings.value.length - list.length;
  const answer = findingsAnswer.value;
  const pending = answer !== null && !answer.value && !answer.error;
  return (
    <section class="panel findings" aria-label="Findings: what the runs did">
      <div class="panel-line">
        <h1>What happened?</h1>
        <span class="sub">
          {list.length > 0 ? plural(listedFindings.value.length, "finding") : ""}
          {runsLeftOut.value > 0 ? ` · without the last ${plural(runsLeftOut.value, "run")}` : ""}
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
      <Proven />
      {answer ? <Status of={[["", answer]]} /> : null}
      {pending ? <Skeleton height={320} /> : null}
      {(!answer || answer.value) && list.length === 0 ? <p class="message">{emptyText()}</p> : null}
      <ol class="finding-list">
        {list.map((finding, place) => (
          <Line key={finding.text} finding={finding} place={place} />
        ))}
      </ol>
      {more > 0 ? (
        <button
          type="button"
          class="finding-more"
          onClick={() => {
            allFindings.value = true;
          }}
        >
          and {formatCount(more)} more
        </button>
      ) : null}
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
    return finding ? `${finding.runs.join(", ")}: ${finding.text}` : "";
  },
  caption: () => "Findings",
  states: [],
  files() {
    if (listedFindings.value.length === 0) return [];
    const lines = () =>
      listedFindings.value.map(({ link: _link, runs, layers, numbers, ...rest }) => ({
        ...rest,
        runs: runs.join(" "),
        layers: layers.join(" "),
        numbers: JSON.stringify(numbers),
      }));
    return [{ title: "CSV of the findings", name: ["findings"], source: () => toCsv(lines()) }];
  },
};
