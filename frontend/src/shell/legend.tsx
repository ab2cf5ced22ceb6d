/** What the colours mean: the states with their shares, the scale of movement, and that of differences. */

import type { ComponentChildren } from "preact";
import { ABSENT, DASH } from "../data/absent";
import { figuresAt as layerFiguresAt } from "../data/cells";
import { formatPower, formatShare } from "../data/format";
import { differenceTicks } from "../data/measure";
import type { Figures } from "../data/record";
import { scaleTop } from "../data/scale";
import { NONFINITE, STATE_HINTS, STATE_NAMES, STATE_TITLES } from "../data/states";
import { MEASURE_TITLES } from "../data/urlstate";
import { blend, type Stops } from "../draw/theme";
import { Lost, OldSign } from "../parts/widgets";
import { stepsText } from "../parts/words";
import { cellsOf } from "../state/answers";
import { blockAt, figuresAt } from "../state/at";
import { baselineRun, differs } from "../state/baseline";
import { numberSteps, pointedRun } from "../state/followers";
import { insteadText, NOT_LOADED, type Resource } from "../state/resource";
import { activeLayer, draftThreshold, focusedRun, listed, type Run, threshold, totalLayers } from "../state/runs";
import { measure, theme, view } from "../state/store";

/** The figures of the run in focus, as the view shows them, at the step under the pointer; and their answer. */
function legendFigures(run: Run, step: number): [Figures | null, Resource<unknown> | null] {
  if (view.value !== "layer") return [figuresAt(run, totalLayers.value, step), blockAt(run, step)];
  const answer = activeLayer.value && cellsOf(run.name, activeLayer.value.id);
  return [answer?.value ? layerFiguresAt(answer.value, step) : null, answer];
}

interface RowProps extends Record<"name" | "title" | "hint", string> {
  count?: number;
  total?: number;
  /** Shown if there is no count. */
  instead?: string;
}

const LegendRow = ({ name, title, hint, count, total, instead }: RowProps) => (
  <li class={name === "violated" ? "warn" : undefined}>
    <i class={`swatch fill-${name}`} />
    <span class="legend-text">
      {title}
      <span class="sub">{hint}</span>
    </span>
    <span class="number">{count === undefined ? instead : formatShare(count, total!)}</span>
  </li>
);

/** A state, as its row has it. */
const rowOf = (state: number) => ({ name: STATE_NAMES[state], title: STATE_TITLES[state], hint: STATE_HINTS[state] });
const VIOLATIONS = { name: "violated", title: "Violated", hint: "held weights changed" };

export function Legend() {
  const run = pointedRun.value ?? focusedRun.value;
  const [figures, answer] = run ? legendFigures(run, numberSteps[0].value) : [null, null];
  const total = figures?.total;
  const none = totalLayers.value.length === 0 ? "no layer" : ABSENT.record;
  const lost = !answer?.value && answer?.error;
  // The line above says what isn't loaded.
  const instead = run && insteadText(answer, DASH) === DASH ? DASH : "";
  return (
    <details class="side-block" aria-label="Channel states" open>
      <summary>
        <h2>
          Channel state{" "}
          {run ? (
            <span class="sub">
              <bdi>{run.short}</bdi>, {figures ? stepsText(figures) : insteadText(answer, none)}
            </span>
          ) : null}
        </h2>
      </summary>
      {lost ? <Lost why={lost} what={`Shares ${NOT_LOADED}`} /> : <OldSign of={[answer]} />}
      <ul class="legend">
        {listed.value.map((state) => (
          <LegendRow key={state} {...rowOf(state)} total={total} instead={instead} count={figures?.counts[state]} />
        ))}
        {figures && figures.violated > 0 ? <LegendRow {...VIOLATIONS} count={figures.violated} total={total} /> : null}
        {figures && figures.counts[NONFINITE] > 0 ? (
          <LegendRow {...rowOf(NONFINITE)} count={figures.counts[NONFINITE]} total={total} />
        ) : null}
      </ul>
    </details>
  );
}

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

export const MovementScale = () => (
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
export function VersusScale() {
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
