/** The dot plot: one chosen measure, a marker per run, for each row. */

import { placeOf, scaleTop } from "../../data/delta";
import { formatCount, formatFineShare, formatNumber } from "../../data/format";
import { differenceText, differenceTicks, MEASURE_TITLES, placeOfDifference } from "../../data/measure";
import { DOTS_WIDTH, type Window } from "../../data/rowbox";
import type { Measure } from "../../data/urlstate";
import { type DotRow, paintDots } from "../../draw/dots";
import { makeRaster } from "../../draw/raster";
import { Canvas } from "../../parts/canvas";
import { sparse } from "../../state/answers";
import { blocksAt } from "../../state/at";
import { baselineDiff, baselineRun, baseOf, differs, measured } from "../../state/baseline";
import { dotStep, spokenStep } from "../../state/followers";
import { type Run, shownRuns, threshold, totalLayers } from "../../state/runs";
import { dotBlock } from "../../state/scrolled";
import { measure, theme, update } from "../../state/store";
import { usePrepared } from "./prepared";

const PADDING = 12;

/** Place of a run's marker on the axis, 0 to 1; NaN where there is none. */
function position(run: Run, layers: readonly string[], step: number, which: Measure): number {
  if (differs.value) {
    const base = baseOf(run);
    return base ? (1 + placeOfDifference(baselineDiff(run, base, layers, step), which)) / 2 : 0.5;
  }
  const value = measured(run, layers, step, which);
  if (which !== "delta") return value;
  return value > 0 ? placeOf(value, threshold.value) : Number.NaN;
}

/** The value behind a position. */
function valueText(run: Run, layers: readonly string[], step: number, which: Measure): string {
  const base = baseOf(run);
  if (base) return differenceText(baselineDiff(run, base, layers, step), which);
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
        {differs.value ? `against ${baselineRun.value?.name}` : "each marker is a run"}, step{" "}
        {formatCount(dotStep.value)}
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

/** The markers of the rows of a window. */
function* dotRows({ places, top }: Window): Generator<DotRow> {
  for (const { row, stripTop, stripHeight } of places) {
    const dots = shownRuns.value.map((run) => {
      const at = position(run, row.layers, dotStep.value, measure.value);
      return { position: at, color: run.color, shape: run.shape };
    });
    yield { y: Math.round(stripTop + stripHeight / 2 - top), dots };
  }
}

interface Props {
  windowAt: (block: number) => Window;
  width: number;
}

export function DotsColumn({ windowAt, width }: Props) {
  const which = measure.value;
  const total = totalLayers.value;
  const words = shownRuns.value.map((run) => `${run.name} ${valueText(run, total, spokenStep.value, which)}`);
  const window = windowAt(dotBlock.value);
  const draw = usePrepared(dotBlock, windowAt, function* (shown, ratio) {
    const raster = makeRaster(Math.round(width * ratio), Math.round((shown.bottom - shown.top) * ratio), ratio);
    const axis = width - 2 * PADDING - 8;
    yield* paintDots(raster, { a: ratio, e: 0, f: 0 }, PADDING, axis, dotRows(shown), theme.value);
    return raster;
  });
  return (
    <div class="dots-column">
      <Canvas
        whole
        label={`${MEASURE_TITLES[which]}${differs.value ? ` against ${baselineRun.value?.name}` : ""} at step ${formatCount(spokenStep.value)}, all layers: ${words.join(", ")}`}
        width={width}
        height={window.bottom - window.top}
        style={{ top: `${window.top}px` }}
        inputs={[
          window,
          dotStep.value,
          which,
          theme.value,
          differs.value && baselineRun.value,
          shownRuns.value,
          ...blocksAt(baselineRun.value ? [...shownRuns.value, baselineRun.value] : shownRuns.value, dotStep.value),
        ]}
        draw={draw}
      />
    </div>
  );
}
