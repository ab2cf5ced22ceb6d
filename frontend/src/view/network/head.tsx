/** The sticky head of a run's column: name, stacked bar and two numbers at the cursor, and the axis. */

import { formatCount, formatShare, formatShort, plural } from "../../model/format";
import { differenceText, measureName } from "../../model/measure";
import { sumOf } from "../../model/overview";
import { type Scale, stepTicks, toPixel } from "../../model/scale";
import { type Readout, readAt } from "../../model/series";
import { LEGEND, STATE_NAMES } from "../../model/states";
import { sparsityText } from "../../model/violations";
import { Icon, Marker, RunName } from "../shared/bits";
import { movedTo } from "../shared/moved";
import { largest, sharesText } from "../shared/words";
import { listViolations } from "../state/actions";
import { against, apart } from "../state/baseline";
import { readStep } from "../state/cursor";
import { fullRange, overviewOf, type Run, rows, sparse, violatedIn } from "../state/data";
import { overviewAt } from "../state/detail";
import { axisZooms, headPart, numberSteps, spokenStep } from "../state/followers";
import { inSight } from "../state/sight";
import { measure } from "../state/store";

const LETTER = 6.2;

/** Ticks that don't cover each other, each with the middle of its label. */
function placeTicks(ticks: readonly number[], scale: Scale) {
  let right = Number.NEGATIVE_INFINITY;
  return ticks.flatMap((tick) => {
    const half = (formatShort(tick).length * LETTER) / 2;
    const middle = Math.min(Math.max(toPixel(scale, tick), half), scale.width - half);
    if (middle - half < right + 3) return [];
    right = middle + half;
    return [{ tick, middle, half }];
  });
}

interface AxisProps {
  width: number;
  pill: boolean;
  /** Of ticks, about. */
  count?: number;
  /** Among others that are beside it. */
  place?: number;
}

/** Round ticks under a strip, and the cursor's step as a pill. */
export function Axis({ width, pill, count, place = 0 }: AxisProps) {
  const [from, to] = headPart(axisZooms, place).value ?? fullRange.value;
  const scale = { from, to, width };
  // Without a pill nothing of it depends on the step under the pointer.
  const at = pill ? toPixel(scale, readStep.value) : -1;
  const text = pill ? formatCount(readStep.value) : "";
  const half = (text.length * LETTER) / 2 + 8;
  const middle = Math.min(Math.max(at, half), width - half + 6);
  const inside = at >= 0 && at <= width;
  const ticks = stepTicks(from, to, count ?? Math.max(2, Math.floor(width / 33)));
  return (
    <div class="axis" style={{ width: `${width}px` }} aria-hidden="true">
      {placeTicks(ticks, scale).map((one) => {
        const covered = inside && Math.abs(one.middle - middle) < one.half + half;
        return (
          <span key={one.tick} class={covered ? "tick covered" : "tick"} style={{ left: `${one.middle}px` }}>
            {formatShort(one.tick)}
          </span>
        );
      })}
      {inside ? (
        <span ref={movedTo(middle, 0)} class="pill">
          <span>{text}</span>
        </span>
      ) : null}
    </div>
  );
}

/** How many of the weights are pruned; an empty line keeps the heads aligned. */
function Sparsity({ readout }: { readout: Readout | null }) {
  const text = readout ? sparsityText(readout) : null;
  if (!readout || text === null) return <div class="two weights" />;
  const whole = `${formatCount(readout.pruned)} of ${plural(readout.prunable, "prunable weight")} held at zero`;
  return (
    <div class="two weights" title={whole}>
      <b>{text}</b>
      <span class="wide"> pruned weights</span>
      <span class="short"> sparse</span>
    </div>
  );
}

/** How far the run is from the baseline, all rows together. */
function Apart({ run, base, step }: { run: Run; base: Run; step: number }) {
  const difference = apart(run, base, rows.value[0]?.layers ?? [], step);
  return (
    <span>
      <b>{differenceText(difference, measure.value)}</b> {measureName(measure.value)}
    </span>
  );
}

/** All rows together at a step. */
function readOf(run: Run, step: number): Readout | null {
  const overview = overviewAt(run.name, step);
  const total = overview && sumOf(overview, rows.value[0]?.layers ?? []);
  return total ? readAt(total, step) : null;
}

/** The bar and the numbers at the step under the pointer. */
function Now({ run, width, step }: { run: Run; width: number; step: number }) {
  const readout = readOf(run, step);
  const fixed = readOf(run, spokenStep.value);
  const base = against(run);
  return (
    <>
      <div class="bar" style={{ width: `${width}px` }} role="img" aria-label={`${run.name}: ${sharesText(fixed)}`}>
        {readout
          ? LEGEND.filter((state) => readout.counts[state] > 0).map((state) => (
              <span key={state} class={`fill-${STATE_NAMES[state]}`} style={{ flexGrow: readout.counts[state] }} />
            ))
          : null}
      </div>
      <div class="two">
        {base ? (
          <Apart run={run} base={base} step={step} />
        ) : readout && readout.total > 0 ? (
          largest(readout).map((entry, i) => (
            <span key={entry.state}>
              {i > 0 ? <span class="dot"> · </span> : ""}
              <b>{formatShare(entry.count, readout.total)}</b> {STATE_NAMES[entry.state]}
            </span>
          ))
        ) : (
          "no record here"
        )}
      </div>
      {sparse.value ? <Sparsity readout={readout} /> : null}
    </>
  );
}

interface HeadProps {
  run: Run;
  width: number;
  /** Among the columns. */
  place: number;
}

export function RunHead({ run, width, place }: HeadProps) {
  const overview = overviewOf(run.name).value;
  const found = overview && violatedIn(run.name, overview.layers);
  return (
    <div class="run-head" title={run.name}>
      <div class="run-head-name">
        <Marker color={run.color} shape={run.shape} />
        <RunName text={run.name} />
        {found ? (
          <button
            type="button"
            class="badge"
            title={`${plural(found.channels, "channel")} moved although held, from step ${formatCount(found.firstStep)}. List them.`}
            onClick={() => listViolations(run.name)}
          >
            <Icon name="warning" size={12} />
            {formatCount(found.channels)}
            <span class="offscreen"> violated in {run.name}</span>
          </button>
        ) : null}
      </div>
      {inSight(run.name) ? (
        <>
          <Now run={run} width={width} step={headPart(numberSteps, place).value} />
          <Axis width={width} pill={place === 0} place={place} />
        </>
      ) : null}
    </div>
  );
}
