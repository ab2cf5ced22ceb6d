/** The dot plot: one chosen measure, a marker per run, for each row. */

import { drawDots } from "../../draw/dots";
import { placeOf, scaleTop } from "../../model/delta";
import { formatCount, formatFineShare, formatNumber } from "../../model/format";
import type { Measure } from "../../model/hash";
import { differenceText, differenceTicks, MEASURE_TITLES, placeOfDifference } from "../../model/measure";
import { Canvas } from "../shared/canvas";
import { against, apart, baselineRun, differs, measured } from "../state/baseline";
import { type Run, rows, shownRuns, sparse, threshold } from "../state/data";
import { finestOf } from "../state/detail";
import { dotStep, spokenStep } from "../state/followers";
import { measure, theme, update } from "../state/store";
import { DOTS_WIDTH, type Window } from "./geometry";

const PADDING = 12;

/** Place of a run's marker on the axis, 0 to 1; NaN where there is none. */
function position(run: Run, layers: readonly string[], step: number, which: Measure): number {
  if (differs.value) {
    const base = against(run);
    return base ? (1 + placeOfDifference(apart(run, base, layers, step), which)) / 2 : 0.5;
  }
  const value = measured(run, layers, step, which);
  if (which !== "delta") return value;
  return value > 0 ? placeOf(value, threshold.value) : Number.NaN;
}

/** The value behind a position. */
function valueText(run: Run, layers: readonly string[], step: number, which: Measure): string {
  const base = against(run);
  if (base) return differenceText(apart(run, base, layers, step), which);
  const value = measured(run, layers, step, which);
  if (Number.isNaN(value)) return "no value";
  return which === "delta" ? formatNumber(value) : formatFineShare(value, 1);
}

/** Ticks of the axis: place from 0 to 1, and text. */
function ticks(): [number, string][] {
  if (differs.value) {
    return differenceTicks(measure.value).map(([place, text]) => [(1 + place) / 2, text === "same" ? "0" : text]);
  }
  if (measure.value !== "delta") return [0, 0.5, 1].map((at) => [at, at === 1 ? "100%" : String(100 * at)]);
  return [
    [0, formatNumber(threshold.value)],
    [1, `≥ ${formatNumber(scaleTop(threshold.value))}`],
  ];
}

export function DotsHead() {
  return (
    <div class="dots-head">
      <select
        aria-label="Measure of the dot plot"
        value={measure.value}
        onChange={(event) => update({ measure: event.currentTarget.value as Measure })}
      >
        {Object.entries(MEASURE_TITLES)
          .filter(([value]) => value !== "sparsity" || sparse.value || measure.value === "sparsity")
          .map(([value, title]) => (
            <option key={value} value={value}>
              {title}
            </option>
          ))}
      </select>
      <div class="two">
        {differs.value ? `against ${baselineRun.value?.name}` : "one marker per run"}, step {formatCount(dotStep.value)}
      </div>
      <div class="axis" aria-hidden="true" style={{ left: `${PADDING}px`, width: `${DOTS_WIDTH - 2 * PADDING - 8}px` }}>
        {ticks().map(([at, text]) => (
          <span key={at} class={`tick ${at === 0 ? "start" : at === 1 ? "end" : ""}`} style={{ left: `${100 * at}%` }}>
            {text}
          </span>
        ))}
      </div>
    </div>
  );
}

export function DotsColumn({ window, width }: { window: Window; width: number }) {
  const step = dotStep.value;
  const which = measure.value;
  const total = rows.value[0]?.layers ?? [];
  const words = shownRuns.value.map((run) => `${run.name} ${valueText(run, total, spokenStep.value, which)}`);
  return (
    <div class="dots-column">
      <Canvas
        label={`${MEASURE_TITLES[which]}${differs.value ? ` against ${baselineRun.value?.name}` : ""} at step ${formatCount(spokenStep.value)}, all layers: ${words.join(", ")}`}
        width={width}
        height={window.bottom - window.top}
        style={{ top: `${window.top}px` }}
        inputs={[
          window,
          step,
          which,
          theme.value,
          differs.value && baselineRun.value && finestOf(baselineRun.value.name),
          shownRuns.value,
          ...shownRuns.value.map((run) => finestOf(run.name)),
        ]}
        draw={(context, w, _h, ratio) => {
          context.setTransform(ratio, 0, 0, ratio, 0, 0);
          const drawn = window.places.map((place) => ({
            y: Math.round(place.stripTop + place.stripHeight / 2 - window.top),
            dots: shownRuns.value.map((run) => ({
              position: position(run, place.row.layers, step, which),
              color: run.color,
              shape: run.shape,
            })),
          }));
          drawDots(context, PADDING, w - 2 * PADDING - 8, drawn, theme.value);
          context.setTransform(1, 0, 0, 1, 0, 0);
        }}
      />
    </div>
  );
}
