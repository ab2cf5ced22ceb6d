/** What the colours mean: the states with their shares. */

import { ABSENT, DASH } from "../data/absent";
import { figuresAt as layerFiguresAt } from "../data/cells";
import { formatShare } from "../data/format";
import type { Figures } from "../data/record";
import { NONFINITE, STATE_HINTS, STATE_NAMES, STATE_TITLES } from "../data/states";
import { Lost, OldSign } from "../parts/widgets";
import { stepsText } from "../parts/words";
import { cellsOf } from "../state/answers";
import { blockAt, figuresAt } from "../state/at";
import { numberSteps, pointedRun } from "../state/followers";
import { insteadText, NOT_LOADED, type Resource } from "../state/resource";
import { activeLayer, focusedRun, listed, type Run, totalLayers } from "../state/runs";
import { view } from "../state/store";

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
