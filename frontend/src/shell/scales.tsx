/** What the tints mean: the scale of movement, that of differences, and the threshold. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { formatPower } from "../data/format";
import { differenceTicks } from "../data/measure";
import { scaleTop } from "../data/scale";
import { MEASURE_TITLES } from "../data/urlstate";
import { blend, type Stops } from "../draw/theme";
import { Lost, OldSign } from "../parts/widgets";
import { overviewOf } from "../state/answers";
import { baselineRun, differs } from "../state/baseline";
import { begin, finish } from "../state/frames";
import { draftThreshold, focusedRun, patience, type Run, threshold } from "../state/runs";
import { measure, theme, update, view } from "../state/store";

interface ScaleProps {
  label: string;
  title: ComponentChildren;
  stops: Stops;
  /** Into which the gradient is divided. */
  parts: number;
  /** Places in per cent, and what is written there. */
  ticks: readonly (readonly [number, string])[];
  children?: ComponentChildren;
}

function ScaleOfColours({ label, title, stops, parts, ticks, children }: ScaleProps) {
  const colors = Array.from({ length: parts + 1 }, (_, i) => blend(stops, i / parts)).join(", ");
  return (
    <section class="side-block" aria-label={label}>
      <h2>{title}</h2>
      <div class="gradient" style={{ background: `linear-gradient(to right, ${colors})` }} />
      <div class="gradient-axis" aria-hidden="true">
        {ticks.map(([left, text]) => (
          <span key={text} class={left < 6 ? "start" : left > 94 ? "end" : ""} style={{ left: `${left}%` }}>
            {text}
          </span>
        ))}
      </div>
      {children}
    </section>
  );
}

/** The powers of ten from the threshold to the top of the scale, at most five of them. */
function movementTicks(lowest: number): [number, string][] {
  const top = Math.log10(scaleTop(lowest));
  const last = Math.floor(top + 1e-9);
  const decades = Math.round(last - Math.log10(lowest));
  const every = Math.max(1, Math.ceil(decades / 4));
  const ticks = Array.from({ length: decades + 1 }, (_, i): [number, string] => {
    const left = (100 * (last - i - Math.log10(lowest))) / (top - Math.log10(lowest));
    return [left, `${left > 99 ? "≥ " : ""}${formatPower(10 ** (last - i))}`];
  });
  return ticks.filter(([left], i) => i % every === 0 && left > -1);
}

const MovementScale = () => (
  <ScaleOfColours
    label="Movement scale"
    title={
      <>
        Relative change per step (Δ) <span class="sub">‖w − w_past‖ / ‖w_past‖</span>
      </>
    }
    stops={theme.value.movement}
    parts={8}
    ticks={movementTicks(draftThreshold.value ?? threshold.value)}
  />
);

/** What the colours of differences mean. */
function VersusScale() {
  const base = baselineRun.value;
  if (!differs.value || !base) return null;
  const layered = view.value === "layer";
  const which = layered ? "delta" : measure.value;
  return (
    <ScaleOfColours
      label="Scale of differences"
      title={
        <>
          {layered ? "Δ" : MEASURE_TITLES[which]}{" "}
          <span class="sub">
            vs <bdi>{base.name}</bdi>
          </span>
        </>
      }
      stops={theme.value.diverging}
      parts={4}
      ticks={differenceTicks(which).map(([place, text]) => [50 + 50 * place, text])}
    >
      <p class="sub scale-words">
        {which === "delta" ? "Moves less, the same, or more" : "Difference in percentage points"}
        {layered ? ". State colours: the channel is in that state, and isn't in the baseline." : "."}
      </p>
    </ScaleOfColours>
  );
}

/**
 * The distribution of Δ of the run in focus, over the slider: the part below the threshold will soon count as quiet.
 */
function Deltas({ run, at }: { run: Run; at: number }) {
  const { value, error } = overviewOf(run.name);
  const deltas = value?.header.deltas;
  if (!deltas) return <div class="deltas">{error ? <Lost why={error} /> : null}</div>;
  const { from, to, counts } = deltas;
  const most = Math.max(1, ...counts);
  const below = ((Math.log10(at) - from) / (to - from)) * counts.length;
  return (
    <div class="deltas" role="img" aria-label={`Distribution of the relative deltas of ${run.name}`}>
      {counts.map((count, bin) => (
        <i key={String(bin)} class={bin < below ? "below" : ""} style={{ height: `${(100 * count) / most}%` }} />
      ))}
    </div>
  );
}

function Threshold() {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const at = draftThreshold.value ?? threshold.value;
  const commit = (value: number) => {
    draftThreshold.value = value;
    if (timer.current !== undefined) {
      clearTimeout(timer.current);
      finish();
    }
    begin();
    timer.current = setTimeout(() => {
      timer.current = undefined;
      update({ threshold: value });
      draftThreshold.value = null;
      finish();
    }, 250);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  return (
    <section class="side-block" aria-label="Threshold">
      <h2>
        <label for="threshold">Quiet below</label>
        <span class="sub">
          Δ &lt; {formatPower(at)} for {patience.value} records
          <OldSign of={[focusedRun.value && overviewOf(focusedRun.value.name)]} />
        </span>
      </h2>
      {focusedRun.value ? <Deltas run={focusedRun.value} at={at} /> : null}
      <input
        id="threshold"
        type="range"
        min={-7}
        max={-1}
        step="0.1"
        value={Math.log10(at)}
        aria-valuetext={`relative delta under ${formatPower(at)}`}
        onInput={(event) => commit(Number((10 ** Number(event.currentTarget.value)).toPrecision(3)))}
      />
    </section>
  );
}

export const Scales = () => (
  <>
    <VersusScale />
    {differs.value && view.value === "network" ? null : <MovementScale />}
    <Threshold />
  </>
);
