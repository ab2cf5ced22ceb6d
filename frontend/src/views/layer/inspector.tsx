/** The channel inspector: one channel's numbers at the cursor, in all runs, and what happened to it. */

import { ABSENT, DASH } from "../../data/absent";
import { type Cells, cellAt, lagAt, recordAt, summarise } from "../../data/cells";
import { formatCount, formatNumber } from "../../data/format";
import { FROZEN, NONFINITE, PRUNED, STATE_NAMES, STATE_TITLES, stateCode } from "../../data/states";
import { lastAtOrBefore } from "../../data/steps";
import { causeText, sizeText } from "../../data/violations";
import { Button, DataTable, Icon, Marker, Notes, Status, TableButton, Waiting } from "../../parts/widgets";
import type { ChannelAnswer, Violation } from "../../server/types";
import { cellsOf, channelOf } from "../../state/answers";
import { setStep } from "../../state/cursor";
import { numberSteps } from "../../state/followers";
import { useFollowed } from "../../state/following";
import { listViolations } from "../../state/navigate";
import { insteadText, type Resource } from "../../state/resource";
import { layerIn, type Run, shownRuns } from "../../state/runs";
import { channel as selected, tables, update } from "../../state/store";
import { AcrossRuns, PinButton, Pins } from "./barcodes";
import { DeltaLines, MaskDensity, share } from "./lines";

const Step = ({ step }: { step: number }) => (
  <button type="button" class="plain linked" onClick={() => setStep(step)}>
    step {formatCount(step)}
  </button>
);

/** "Changed while frozen" if the whole channel is held, else that some held weights changed. */
function titleOf(cells: Cells, channel: number, step: number): string {
  const state = cellAt(cells, channel, step)?.state;
  return state === FROZEN || state === PRUNED ? `Changed while ${STATE_NAMES[state]}` : "Held weights changed";
}

function Entry({ title, entry }: { title: string; entry: Violation }) {
  return (
    <p title={entry.text}>
      <b>{title}</b>
      from <Step step={entry.first_step} />{" "}
      {entry.last_step > entry.first_step ? `to ${formatCount(entry.last_step)}` : "only"}, {sizeText(entry)}
      <br />
      Likely cause: {causeText(entry.cause)}
    </p>
  );
}

function ChannelViolations(props: { run: string; answer: ChannelAnswer | null; cells: Cells; channel: number }) {
  const { answer, cells, channel } = props;
  const violations = answer?.violations ?? [];
  if (violations.length === 0) return null;
  return (
    <div class="violation" role="note">
      <Icon name="warning" size={16} />
      <div>
        {violations.map((entry) => (
          <Entry key={entry.first_step} title={titleOf(cells, channel, entry.first_step)} entry={entry} />
        ))}
        <button type="button" class="plain linked all" onClick={() => listViolations(props.run)}>
          All violations of the run
        </button>
      </div>
    </div>
  );
}

function Metrics({ asked, cells, channel }: { asked: Resource<ChannelAnswer>; cells: Cells; channel: number }) {
  const answer = asked.value;
  const instead = answer ? null : insteadText(asked);
  const step = numberSteps[1].value;
  const cell = cellAt(cells, channel, step);
  const i = answer && cell ? lastAtOrBefore(answer.steps, step) : -1;
  const lag = lagAt(cells, step);
  const { elements } = cells.header;
  const moved = summarise(cells).lastMoved[channel];
  const part = (values?: (number | null)[]) =>
    instead ?? share(i >= 0 ? values?.[i] : null, elements, answer?.precision);
  const number = (values?: (number | null)[], record = i) => instead ?? formatNumber(i >= 0 ? values?.[record] : null);
  const nonfinite = answer?.nonfinite[i] ?? 0;
  const of = elements > 0 ? `of ${formatCount(elements)}` : "";
  const metrics = [
    [lagText(lag), formatNumber(cell?.delta)],
    ["‖w‖ now / at start", number(answer?.norm), i >= 0 ? `/ ${number(answer?.norm, 0)}` : ""],
    ["‖w‖ past · ‖Δ‖", number(answer?.past_norm), i >= 0 ? `· ${number(answer?.delta_norm)}` : ""],
    ["Last moved", moved < 0 ? "never" : formatCount(cells.steps[moved])],
    ["Trainable", part(answer?.trainable), of],
    ["Not pruned", part(answer?.kept), of],
    ["Weights changed", part(answer?.changed)],
    ["Largest |Δ|", number(answer?.delta_max)],
    ...(nonfinite > 0 ? [["Non-finite", formatCount(nonfinite)]] : []),
  ];
  return (
    <dl class="metrics">
      {metrics.map(([title, value, detail]) => (
        <div key={title} class="metric">
          <dt>{title}</dt>
          <dd>
            {value}
            {detail ? <span class="sub"> {detail}</span> : null}
          </dd>
        </div>
      ))}
    </dl>
  );
}

const lagText = (lag: number | null): string =>
  lag === null ? "Δ, no past values" : lag === 1 ? "Δ since previous step" : `Δ since ${formatCount(lag)} steps ago`;

function Changes({ answer }: { answer: ChannelAnswer | null }) {
  if (!answer) return null;
  if (answer.changes.length === 0) return <p class="sub">{ABSENT.changes}.</p>;
  return (
    <ol class="changes">
      {answer.changes.map((change) => (
        <li key={`${change.step} ${change.to}`}>
          <button type="button" class="plain" onClick={() => setStep(change.step)}>
            <span class="at">{formatCount(change.step)}</span> {STATE_NAMES[stateCode(change.from)]} →{" "}
            <b>{STATE_NAMES[stateCode(change.to)]}</b>
          </button>
        </li>
      ))}
    </ol>
  );
}

/** JSON has neither infinity, the change of a past of zeros, nor NaN, where a norm doesn't exist. */
const relativeText = (answer: ChannelAnswer, i: number): string => {
  const finite = stateCode(answer.state[i]) !== NONFINITE && answer.past_norm[i] === 0;
  return formatNumber(answer.relative_delta[i] ?? (finite ? Number.POSITIVE_INFINITY : null));
};

function ChannelTable({ answer }: { answer: ChannelAnswer }) {
  const columns: [string, (record: number) => string][] = [
    ["Step", (i) => formatCount(answer.steps[i])],
    ["Past", (i) => (answer.past_steps[i] < answer.steps[i] ? formatCount(answer.past_steps[i]) : DASH)],
    ["State", (i) => STATE_NAMES[stateCode(answer.state[i])]],
    ["Violated", (i) => (answer.violated[i] ? "violated" : "")],
    ["Relative Δ", (i) => relativeText(answer, i)],
    ["‖w‖", (i) => formatNumber(answer.norm[i])],
    ["‖Δ‖", (i) => formatNumber(answer.delta_norm[i])],
    ["Largest |Δ|", (i) => formatNumber(answer.delta_max[i])],
    ["Changed", (i) => share(answer.changed[i])],
    ["Moved since the record before", (i) => (answer.moved[i] === null ? DASH : answer.moved[i] ? "yes" : "no")],
    ["Not pruned", (i) => share(answer.kept[i])],
    ["Trainable", (i) => share(answer.trainable[i])],
    ["Non-finite", (i) => formatCount(answer.nonfinite[i] ?? 0)],
  ];
  return (
    <DataTable
      caption={`Channel ${answer.channel}, each record (values ±${(answer.precision * 100).toFixed(1)}%, relative Δ and shares ±4.5%)`}
      columns={columns.map(([title]) => title)}
      texts={["State", "Violated"]}
      rows={answer.steps.map((_, i) => columns.map(([, textOf]) => textOf(i)))}
    />
  );
}

/** Whether the channels of the other runs are the same ones: only where the initial weights are. */
function Origins({ run, layer, channel }: { run: Run; layer: string; channel: number }) {
  const others = shownRuns.value.filter((other) => other.name !== run.name && layerIn(other, layer));
  const names = (list: readonly Run[]) => list.map((other) => other.name).join(", ");
  const unknown = others.filter((other) => !other.origin || !run.origin);
  const foreign = others.filter((other) => other.origin && run.origin && other.origin !== run.origin);
  return (
    <Notes
      texts={[
        foreign.length > 0 &&
          `Channel ${channel} isn't comparable between these runs: ${names(foreign)} started from different weights ` +
            `than ${run.name}. Compare shares per layer instead.`,
        unknown.length > 0 &&
          `Channel ${channel} may not be comparable: it isn't known whether ${names(unknown)} started from the same ` +
            `weights as ${run.name}.`,
      ]}
    />
  );
}

function Badge({ cells, channel }: { cells: Cells; channel: number }) {
  const cell = cellAt(cells, channel, numberSteps[1].value);
  if (!cell) return null;
  return (
    <>
      <span class={`state-badge badge-${STATE_NAMES[cell.state].replace(" ", "-")}`}>{STATE_TITLES[cell.state]}</span>
      {cell.violated ? (
        <span class="badge" title="Held weights changed">
          <Icon name="warning" size={12} />
          <span class="offscreen">held weights changed</span>
        </span>
      ) : null}
    </>
  );
}

/** @param chosen whether the user chose the channel. */
function Head(props: { run: Run; cells: Cells; channel: number; chosen: boolean }) {
  const { run, cells, channel, chosen } = props;
  const step = numberSteps[1].value;
  const own = cells.steps[recordAt(cells, step)];
  // A record of the layer may be missing, or unreadable.
  const isOlder = own < run.recordSteps[lastAtOrBefore(run.recordSteps, step)];
  return (
    <>
      <header>
        <div class="what">
          <h2>Channel {channel}</h2>
          <Badge cells={cells} channel={channel} />
        </div>
        <PinButton channel={channel} />
        <TableButton panel="channel" what="the channel" />
        {chosen ? (
          <Button class="small" label="Close the channel (Esc)" onClick={() => update({ channel: null })}>
            <Icon name="close" size={16} />
          </Button>
        ) : null}
      </header>
      <p class="where">
        <Marker color={run.color} shape={run.shape} size={9} /> <bdi>{run.name}</bdi> · step {formatCount(step)}
        {isOlder ? ` (values of step ${formatCount(own)})` : ""}
        {chosen ? "" : " · first row"}
      </p>
    </>
  );
}

interface Props {
  run: Run;
  layer: string;
  cells: Cells;
  /** The channels drawn, from the top. */
  rows: Uint32Array;
}

/** Follows the choice, which the heatmap shows first: the numbers once they are there, then the pictures. */
function Channel({ run, layer, cells, rows }: Props) {
  const of = `${run.name} ${layer} ${cells.header.variable}`;
  const own = selected.value !== null && selected.value < cells.channels ? selected.value : null;
  const asked = channelOf(run.name, layer, own ?? rows[0]);
  const chosen = useFollowed(own, of, !asked.loading);
  const channel = chosen ?? rows[0];
  const now = channelOf(run.name, layer, channel);
  const answer = now.value;
  const [barcodes, lines] = [useFollowed(channel, of), useFollowed(channel, of)];
  return (
    <>
      <Head run={run} cells={cells} channel={channel} chosen={chosen !== null} />
      <Status of={[["", now]]} />
      {tables.value.has("channel") && answer ? (
        <ChannelTable answer={answer} />
      ) : (
        <>
          <Metrics asked={now} cells={cells} channel={channel} />
          <ChannelViolations run={run.name} answer={answer} cells={cells} channel={channel} />
          {answer ? <MaskDensity answer={answer} elements={cells.header.elements} /> : null}
          <Pins run={run} cells={cells} channel={channel} />
          <AcrossRuns layer={layer} channel={barcodes} run={run} />
          <Origins run={run} layer={layer} channel={barcodes} />
          <DeltaLines layer={layer} channel={lines} run={run} />
          <h3>State changes</h3>
          <Changes answer={answer} />
        </>
      )}
    </>
  );
}

export function Inspector({ cells, ...rest }: Omit<Props, "cells"> & { cells: Cells | null }) {
  return (
    <section class="panel inspector" aria-label="Channel inspector">
      {cells && cells.records > 0 && rest.rows.length > 0 ? (
        <Channel cells={cells} {...rest} />
      ) : (
        <Waiting answer={cellsOf(rest.run.name, rest.layer)} height={300} />
      )}
    </section>
  );
}
