/** What of a channel moved although it was held. */

import { type Cells, cellAt, deltaAt, summarise } from "../../data/cells";
import { formatCount, formatNumber } from "../../data/format";
import { FROZEN, PRUNED, STATE_NAMES, VIOLATED } from "../../data/states";
import { causeText, elementsText, farText } from "../../data/violations";
import { Icon } from "../../parts/widgets";
import type { ChannelAnswer, Violation } from "../../server/types";
import { setStep } from "../../state/cursor";
import { listViolations } from "../../state/navigate";

const Step = ({ step }: { step: number }) => (
  <button type="button" class="plain linked" onClick={() => setStep(step)}>
    step {formatCount(step)}
  </button>
);

/** "Changed while frozen" where the whole channel is held, else that some held weights changed. */
function titleOf(cells: Cells, channel: number, step: number): string {
  const state = cellAt(cells, channel, step)?.state;
  return state === FROZEN || state === PRUNED ? `Changed while ${STATE_NAMES[state]}` : "Held weights changed";
}

function Entry({ title, entry }: { title: string; entry: Violation }) {
  return (
    <p title={entry.text}>
      <b>{title}</b>
      from <Step step={entry.first_step} />{" "}
      {entry.last_step > entry.first_step ? `to ${formatCount(entry.last_step)}` : "only"},{" "}
      {entry.largest === null ? "to non-finite values" : `by up to ${farText(entry)}`}
      {entry.elements === null ? null : (
        <>
          , <span class="together">{elementsText(entry)} held weights</span>
        </>
      )}
      <br />
      Likely cause: {causeText(entry.cause)}
    </p>
  );
}

/** What the states alone tell, for a server that keeps no audit. */
function Marked({ cells, channel, first }: { cells: Cells; channel: number; first: number }) {
  let count = 0;
  let most = 0;
  for (let t = 0; t < cells.records; t++) {
    if (!(cells.state[channel * cells.records + t] & VIOLATED)) continue;
    count++;
    most = Math.max(most, deltaAt(cells, channel * cells.records + t));
  }
  return (
    <p>
      <b>{titleOf(cells, channel, cells.steps[first])}</b>
      in {formatCount(count)} of {formatCount(cells.records)} records, first at <Step step={cells.steps[first]} />, by a
      relative Δ of up to {formatNumber(most)}.
    </p>
  );
}

export function ChannelViolations(props: { run: string; answer: ChannelAnswer | null; cells: Cells; channel: number }) {
  const { answer, cells, channel } = props;
  const first = summarise(cells).firstViolated[channel];
  const violations = answer?.violations ?? [];
  if (violations.length === 0 && first < 0) return null;
  return (
    <div class="violation" role="note">
      <Icon name="warning" size={16} />
      <div>
        {violations.map((entry) => (
          <Entry key={entry.first_step} title={titleOf(cells, channel, entry.first_step)} entry={entry} />
        ))}
        {violations.length === 0 ? <Marked cells={cells} channel={channel} first={first} /> : null}
        <button type="button" class="plain linked all" onClick={() => listViolations(props.run)}>
          All violations of the run
        </button>
      </div>
    </div>
  );
}
