/** The Findings view: what the runs did, each finding with a link to the picture that shows it. */

import { ABSENT } from "../../data/absent";
import { toCsv } from "../../data/csv";
import { formatCount, plural } from "../../data/format";
import { LISTED } from "../../data/states";
import { drawStrip } from "../../draw/strip";
import { RasterCanvas, useSize } from "../../parts/canvas";
import { Crosshair } from "../../parts/plot";
import { Marker, RunName, Select, Skeleton, Status } from "../../parts/widgets";
import type { Finding } from "../../server/types";
import { findingLane } from "../../state/answers";
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
import { activeLayer, type Run, runNamed, shownRuns, viewedSteps } from "../../state/runs";
import { focusFinding, page, theme } from "../../state/store";
import css from "../../style/findings.css";
import type { View } from "../view";
import { Lanes } from "./lanes";

/** The width of a finding's strip. */
const STRIP = 150;

/** The run of a finding, or how many runs it is about. */
function RunsOf({ names }: { names: readonly string[] }) {
  const runs = names.map(runNamed).filter((run) => run !== null);
  return (
    <span class="finding-run">
      {runs.slice(0, 8).map((run) => (
        <span key={run.name} title={run.name}>
          <Marker color={run.color} shape={run.shape} />
        </span>
      ))}
      {runs.length === 1 ? (
        <RunName run={runs[0]} />
      ) : (
        <bdi title={names.join("\n")}>{plural(names.length, "run")}</bdi>
      )}
    </span>
  );
}

/** More lines than this are joined to one for all runs of which nothing changed. */
const MOST_PROVEN = 4;

/** "16,623 to 22,945", or "22,877" */
function spanText(counts: readonly number[]): string {
  const [low, high] = [Math.min(...counts), Math.max(...counts)];
  return low === high ? formatCount(low) : `${formatCount(low)} to ${formatCount(high)}`;
}

/** One sentence about runs of which nothing changed. */
function joinedText(own: readonly Run[]): string {
  const values = spanText(own.map(({ verified }) => verified.values));
  const weights = spanText(own.map(({ verified }) => verified.weights));
  return `in each run ${values} frozen or pruned values in ${weights} weights were compared: 0 changed`;
}

/** What was frozen or pruned and compared: runs with one sentence share a line, and those without a change if many. */
function provenLines(): { text: string; own: Run[] }[] {
  const byText = new Map<string, Run[]>();
  for (const run of shownRuns.value) byText.set(run.verified.text, [...(byText.get(run.verified.text) ?? []), run]);
  const lines = [...byText].map(([text, own]) => ({ text, own }));
  if (lines.length <= MOST_PROVEN) return lines;
  const joins = ({ own }: { own: Run[] }) => own[0].verified.changed === 0 && own[0].verified.values > 0;
  const joined = lines.filter(joins).flatMap(({ own }) => own);
  const rest = lines.filter((line) => !joins(line));
  return joined.length > 0 ? [...rest, { text: joinedText(joined), own: joined }] : rest;
}

function Proven() {
  return (
    <ul class="finding-list" aria-label="What was verified">
      {provenLines().map(({ text, own }) => (
        <li key={text} class={own.some(({ verified }) => verified.changed > 0) ? "proven violations" : "proven"}>
          <RunsOf names={own.map(({ name }) => name)} />
          <span class="finding-text">{text}</span>
        </li>
      ))}
    </ul>
  );
}

/** What a finding is about over steps: its layers in the run that it leads to. */
function Small({ finding }: { finding: Finding }) {
  const lane = findingLane(finding)?.value ?? null;
  const [width, height] = [STRIP, 14];
  if (!lane) return <span class="finding-strip" />;
  return (
    <span class="finding-strip">
      <RasterCanvas
        label={`States of ${finding.layers.length > 0 ? plural(finding.layers.length, "layer") : "all layers"} over steps`}
        width={width}
        height={height}
        inputs={[lane, theme.value]}
        steps
        paint={({ area, scale, pixels }) => drawStrip(area, lane.columns, scale, lane.threshold, pixels)}
      />
      <Crosshair width={width} height={height} />
    </span>
  );
}

function Line({ finding, place }: { finding: Finding; place: number }) {
  return (
    <li class={`finding ${finding.severity} ${finding.kind} ${place === focusFinding.value ? "on" : ""}`}>
      <button type="button" class="plain" onClick={() => openFinding(finding)}>
        <RunsOf names={finding.runs} />
        <Small finding={finding} />
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
  return `${ABSENT.findings}: no layer is frozen, pruned or unchanged, and no record is known to be missing.`;
}

function FindingsView() {
  const list = shownFindings.value;
  const more = listedFindings.value.length - list.length;
  const answer = findingsAnswer.value;
  const pending = answer !== null && !answer.value && !answer.error;
  const { ref, size } = useSize<HTMLElement>();
  return (
    <section ref={ref} class="panel findings" aria-label="Findings: what the runs did">
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
      <Lanes room={size.height} />
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
  states: LISTED,
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
