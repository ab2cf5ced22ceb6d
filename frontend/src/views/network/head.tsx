/** The sticky head of a run's column: name, stacked bar and two numbers at the cursor, and the axis. */

import { formatCount, formatShare, plural } from "../../data/format";
import { differenceText, measureName } from "../../data/measure";
import type { Figures } from "../../data/record";
import { LEGEND, STATE_NAMES } from "../../data/states";
import { sparsityText } from "../../data/violations";
import { Axis } from "../../parts/axis";
import { Marker } from "../../parts/widgets";
import { largest, sharesText } from "../../parts/words";
import { overviewOf, sparse, violatedIn } from "../../state/answers";
import { awaited, figuresAt } from "../../state/at";
import { baselineDiff, baseOf } from "../../state/baseline";
import { headPart, numberSteps, spokenStep } from "../../state/followers";
import { listViolations } from "../../state/navigate";
import { type Run, totalLayers } from "../../state/runs";
import { measure } from "../../state/store";
import { inSight } from "../../state/viewport";

import { Badge } from "./names";

/** How many of the weights are pruned; an empty line keeps the heads aligned. */
function Sparsity({ figures }: { figures: Figures | null }) {
  const text = figures ? sparsityText(figures) : null;
  if (!figures || text === null) return <div class="two weights" />;
  const whole = `${formatCount(figures.pruned)} of ${plural(figures.prunable, "prunable weight")} held at zero`;
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
  const difference = baselineDiff(run, base, totalLayers.value, step);
  return (
    <span>
      <b>{differenceText(difference, measure.value)}</b> {measureName(measure.value)}
    </span>
  );
}

/** The bar and the numbers at the step under the pointer. */
function Now({ run, width, step }: { run: Run; width: number; step: number }) {
  const figures = figuresAt(run, totalLayers.value, step);
  const fixed = figuresAt(run, totalLayers.value, spokenStep.value);
  const base = baseOf(run);
  return (
    <>
      <div class="bar" style={{ width: `${width}px` }} role="img" aria-label={`${run.name}: ${sharesText(fixed)}`}>
        {figures
          ? LEGEND.filter((state) => figures.counts[state] > 0).map((state) => (
              <span key={state} class={`fill-${STATE_NAMES[state]}`} style={{ flexGrow: figures.counts[state] }} />
            ))
          : null}
      </div>
      <div class="two">
        {base ? (
          <Apart run={run} base={base} step={step} />
        ) : figures && figures.total > 0 ? (
          largest(figures).map((entry, i) => (
            <span key={entry.state}>
              {i > 0 ? <span class="dot"> · </span> : ""}
              <b>{formatShare(entry.count, figures.total)}</b> {STATE_NAMES[entry.state]}
            </span>
          ))
        ) : awaited(run, step) ? (
          "…"
        ) : (
          "no record yet"
        )}
      </div>
      {sparse.value ? <Sparsity figures={figures} /> : null}
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
  const audit = overview && violatedIn(run.name, overview.header.layers);
  return (
    <div class="run-head" title={run.name}>
      <div class="run-head-name">
        <Marker color={run.color} shape={run.shape} />
        <bdi class="run-head-text">{run.short}</bdi>
        {audit ? (
          <Badge
            run={run}
            channels={audit.channels}
            title={`${plural(audit.channels, "channel")} violated since step ${formatCount(audit.first.first_step)}. List them.`}
            onClick={() => listViolations(run.name)}
          />
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
