/** Learning rate and scalar at the cursor, in views that have no lanes. */

import { plural } from "../data/format";
import { SIDEBAR } from "../data/rowbox";
import { RunLabel } from "../parts/widgets";
import { stepText } from "../parts/words";
import { cellsOf, scalarsOf } from "../state/answers";
import { blockAt } from "../state/at";
import { numberSteps, pointedRun } from "../state/followers";
import { rateText, rateTitle, scalarText } from "../state/lanes";
import { activeLayer, focusedRun, layerIn, type Run, shownRuns } from "../state/runs";
import { pageWidth, view } from "../state/store";

/** The width of a run's numbers, with a layer's own rate, and that of all others; lanes show runs that have no room. */
const [WIDE, WIDER, REST] = [320, 400, 230];

const severalRates = (run: Run, step: number) => blockAt(run, step)?.value?.severalRates;

/** The run in focus, then the others in their order. */
function listed(step: number): Run[] {
  const first = pointedRun.value ?? focusedRun.value;
  const rest = shownRuns.value.filter((run) => run !== first);
  const own = view.value === "layer" && shownRuns.value.some((run) => severalRates(run, step));
  const count = Math.floor((pageWidth.value - SIDEBAR - REST) / (own ? WIDER : WIDE));
  return [...(first ? [first] : []), ...rest].slice(0, Math.max(1, count));
}

/** The learning rate of the layer that is open where that has its own, else that of the run, and what it is called. */
function rateOf(run: Run, step: number): [string, string] {
  const several = severalRates(run, step);
  const layer = view.value === "layer" ? activeLayer.value : null;
  return several && layer && layerIn(run, layer.id)
    ? ["learning rate of this layer", rateText(run, step, cellsOf(run.name, layer.id))]
    : [rateTitle(several), rateText(run, step)];
}

function Numbers({ run, step }: { run: Run; step: number }) {
  const [rateName, rate] = rateOf(run, step);
  const name = scalarsOf(run.name).value?.name;
  const { value, own } = scalarText(run, step);
  return (
    <span class="readout-run">
      <RunLabel run={run} />
      <span class="sub">{rateName}</span> <b class="number">{rate}</b>
      {name ? (
        <>
          <span class="sub scalar" title={name}>
            {name}
          </span>
          {own ? <span class="sub">at {own}</span> : null} <b class="number">{value}</b>
        </>
      ) : null}
    </span>
  );
}

export function Readout() {
  const step = numberSteps[1].value;
  const list = listed(step);
  const more = shownRuns.value.length - list.length;
  return (
    <>
      <b>{stepText(step).replace(/^s/, "S")}</b>
      {list.map((run) => (
        <Numbers key={run.name} run={run} step={step} />
      ))}
      {more > 0 ? <span class="sub">{plural(more, "more run")} in Findings</span> : null}
    </>
  );
}
