/** The change of one place over steps, one line per run. */

import { formatCount } from "../../data/format";
import { CHANGE_HINTS, CHANGE_TITLES, changeOf, changeTicks, formatChange, probedAt } from "../../data/function";
import { drawTrends, trendY } from "../../draw/lines";
import { Axis } from "../../parts/axis";
import { Canvas, inPixels, Sized } from "../../parts/canvas";
import { Plot } from "../../parts/plot";
import { DataTable, RunLabel, Select } from "../../parts/widgets";
import { cursor } from "../../state/cursor";
import { numberSteps } from "../../state/followers";
import { activeChange, activeProbed, places, probed, type Spot, useChangeAxis } from "../../state/probed";
import { range } from "../../state/runs";
import { theme, update } from "../../state/store";
import { FunctionPanel, placeText, valueText } from "./place";

const LEFT = 44;
const BELOW = 24;

function Lines({ own, width, height }: { own: Spot; width: number; height: number }) {
  const change = activeChange.value;
  const list = probed.value;
  const axis = useChangeAxis(own.id, 9);
  const bold = activeProbed.value?.run.name;
  const words = list.map((entry) => `${entry.run.name} ${valueText(entry, own, cursor.value)}`).join(", ");
  return (
    <>
      <div class="lines-axis" style={{ width: `${LEFT}px` }} aria-hidden="true">
        {changeTicks(axis, 4).map((value) => (
          <span key={value} style={{ top: `${trendY(axis, value, height, 0, 1)}px` }}>
            {formatChange(value, change)}
          </span>
        ))}
        {axis.log ? <span style={{ top: `${height - 4}px` }}>0</span> : null}
      </div>
      <div>
        <Plot class="fn-plot" width={width} style={{ height: `${height}px` }}>
          <Canvas
            label={`${CHANGE_TITLES[change]} change of ${placeText(own)} over steps. At step ${formatCount(cursor.value)}: ${words}`}
            width={width}
            height={height + 4}
            inputs={[list, own.id, change, bold, theme.value]}
            steps
            draw={inPixels((context, scale) => {
              const trends = list.map(({ run, series }) => ({
                ...run,
                steps: series.steps,
                values: Float64Array.from(series.steps, (_, t) => changeOf(series, change, series.rows.get(own.id), t)),
                bold: run.name === bold,
              }));
              drawTrends({ context, scale, height, theme: theme.value }, trends, axis);
            })}
          />
        </Plot>
        <Axis width={width} pill count={Math.max(3, Math.floor(width / 80))} />
      </div>
    </>
  );
}

/** Each run's value at the cursor; a click makes it the run of the other panels. */
function Values({ own }: { own: Spot }) {
  return (
    <div class="fn-values" role="group" aria-label="Run">
      {probed.value.map((entry) => (
        <button
          key={entry.run.name}
          type="button"
          class="plain"
          aria-pressed={entry.run.name === activeProbed.value?.run.name}
          title={entry.run.name}
          onClick={() => update({ run: entry.run.name })}
        >
          <RunLabel run={entry.run} />
          <span class="number">{valueText(entry, own, numberSteps[1].value)}</span>
        </button>
      ))}
    </div>
  );
}

/** One row per shown step with a record of any run. */
function LinesTable({ own }: { own: Spot }) {
  const [from, to] = range.value;
  const steps = new Set(probed.value.flatMap(({ series }) => [...series.steps]));
  return (
    <DataTable
      caption={`${CHANGE_TITLES[activeChange.value]} change of ${placeText(own)} over steps`}
      columns={["Step", ...probed.value.map(({ run }) => run.name)]}
      texts={[]}
      rows={[...steps]
        .filter((step) => step >= from && step < to)
        .sort((a, b) => a - b)
        .map((step) => [
          formatCount(step),
          ...probed.value.map((entry) =>
            entry.series.steps[probedAt(entry.series, step)] === step ? valueText(entry, own, step) : "–",
          ),
        ])}
    />
  );
}

export function FunctionLines({ own }: { own: Spot }) {
  const head = (
    <>
      <Select
        label="Layer or output"
        value={own.id}
        options={places.value.map((other) => [other.id, placeText(other)])}
        onPick={(id) => update({ place: id })}
      />
      <span class="sub">
        {CHANGE_HINTS[activeChange.value]}
        {activeChange.value === "decisions" ? "" : ", log scale"}
      </span>
    </>
  );
  return (
    <FunctionPanel name="lines" title="Over steps" head={head} table={() => <LinesTable own={own} />}>
      <div class="fn-lines-body">
        <Sized class="lines" least={LEFT}>
          {({ width, height }) => <Lines own={own} width={width - LEFT} height={height - BELOW} />}
        </Sized>
        <Values own={own} />
      </div>
    </FunctionPanel>
  );
}
