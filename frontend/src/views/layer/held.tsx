/** What is held of one channel: the shares that its masks let through over steps, and what moved nevertheless. */

import type { Cells } from "../../data/cells";
import { deltaAt, summarise } from "../../data/cells";
import { formatCount, formatNumber, formatShare, wholeShare } from "../../data/format";
import { FROZEN, PRUNED, STATE_BITS, STATE_NAMES, VIOLATED } from "../../data/states";
import { axisEnd, lastAtOrBefore } from "../../data/steps";
import { causeText, elementsText, farText } from "../../data/violations";
import { drawShares, type ShareLine } from "../../draw/lines";
import { Canvas, useSize } from "../../parts/canvas";
import { Crosshair } from "../../parts/crosshair";
import { Icon } from "../../parts/widgets";
import type { ChannelAnswer, Violation } from "../../server/types";
import { cursor, setStep } from "../../state/cursor";
import { numberSteps } from "../../state/followers";
import { listViolations } from "../../state/navigate";
import { scaleOf } from "../../state/runs";
import { theme } from "../../state/store";

const HEIGHT = 44;
const LEFT = 36;

/** A share of a channel's elements as text; one that isn't known is a dash. */
export const share = (value: number | null | undefined, elements = 0, precision = 1): string =>
  value === null || value === undefined ? "–" : formatShare(wholeShare(value, elements, precision), 1);

function toLine(answer: ChannelAnswer, which: "kept" | "trainable"): ShareLine {
  return {
    steps: Float64Array.from(answer.steps),
    values: Float64Array.from(answer[which], (value) => value ?? Number.NaN),
    dashed: which === "trainable",
  };
}

/** Kept and trainable weights of the channel over steps; nothing where no mask ever held any. */
export function MaskDensity({ answer, elements }: { answer: ChannelAnswer; elements: number }) {
  const { ref, size } = useSize<HTMLDivElement>();
  const held = [...answer.kept, ...answer.trainable].some((value) => value !== null && value < 1);
  if (!held) return null;
  const width = Math.max(0, size.width - LEFT);
  const steps = Float64Array.from(answer.steps);
  const end = axisEnd(steps, steps);
  const at = (step: number) => (step >= end ? -1 : lastAtOrBefore(steps, step));
  const text = (which: "kept" | "trainable", step: number) =>
    share(answer[which][at(step)], elements, answer.precision);
  const words = (step: number) => `kept ${text("kept", step)}, trainable ${text("trainable", step)}`;
  return (
    <>
      <h3>
        Mask density
        <span class="sub density-key">
          <i class="line-key" /> kept {text("kept", numberSteps[1].value)}
          <i class="line-key dashed" /> trainable {text("trainable", numberSteps[1].value)}
        </span>
      </h3>
      <div class="lines" ref={ref}>
        <div class="lines-axis" style={{ width: `${LEFT}px`, height: `${HEIGHT}px` }} aria-hidden="true">
          <span style={{ top: "1px" }}>100%</span>
          <span style={{ top: `${HEIGHT}px` }}>0</span>
        </div>
        {width > 0 ? (
          <div class="lines-plot" style={{ width: `${width}px` }}>
            <Canvas
              label={`Share of the weights of channel ${answer.channel} that the masks let through at step ${formatCount(cursor.value)}: ${words(cursor.value)}`}
              width={width}
              height={HEIGHT + 2}
              inputs={[answer, theme.value]}
              steps
              draw={(context, w, _h, ratio) => {
                context.setTransform(ratio, 0, 0, ratio, 0, 0);
                const lines = [toLine(answer, "kept"), toLine(answer, "trainable")];
                drawShares(context, scaleOf(w), HEIGHT, end, lines, theme.value);
                context.setTransform(1, 0, 0, 1, 0, 0);
              }}
            />
            <Crosshair width={width} height={HEIGHT} />
          </div>
        ) : null}
      </div>
    </>
  );
}

const Step = ({ step }: { step: number }) => (
  <button type="button" class="plain linked" onClick={() => setStep(step)}>
    step {formatCount(step)}
  </button>
);

/** "Changed while frozen" where the whole channel is held, else that some held weights changed. */
function titleOf(cells: Cells, channel: number, step: number): string {
  const record = lastAtOrBefore(cells.steps, step);
  const state = record < 0 ? 0 : cells.state[channel * cells.records + record] & STATE_BITS;
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
  const found = answer?.violations ?? [];
  if (found.length === 0 && first < 0) return null;
  return (
    <div class="violation" role="note">
      <Icon name="warning" size={16} />
      <div>
        {found.map((entry) => (
          <Entry key={entry.first_step} title={titleOf(cells, channel, entry.first_step)} entry={entry} />
        ))}
        {found.length === 0 ? <Marked cells={cells} channel={channel} first={first} /> : null}
        <button type="button" class="plain linked all" onClick={() => listViolations(props.run)}>
          All violations of the run
        </button>
      </div>
    </div>
  );
}
