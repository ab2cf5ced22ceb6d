/** The dot plot: one chosen measure, a marker per run, for each row. */

import { drawDots } from "../draw/dots";
import { placeOf, scaleTop } from "../model/delta";
import { formatCount, formatNumber } from "../model/format";
import type { Measure } from "../model/hash";
import { sumOf } from "../model/overview";
import { type Readout, readAt } from "../model/series";
import { stateCode } from "../model/states";
import { sparsityText } from "../model/violations";
import { Canvas } from "./canvas";
import { cursor, readStep } from "./cursor";
import { overviewOf, type Run, rows, shownRuns, sparse, threshold } from "./data";
import { DOTS_WIDTH, type Window } from "./geometry";
import { measure, theme, update } from "./store";

const TITLES: Record<Measure, string> = {
  moving: "Still moving",
  settled: "Settled",
  frozen: "Frozen",
  pruned: "Pruned",
  reactivated: "Reactivated",
  violated: "Violated",
  sparsity: "Pruned weights",
  delta: "Mean Δ of moving",
};

const PADDING = 12;

/** A readout's place on the axis, 0 to 1; NaN where there is none. */
function position(readout: Readout | null, which: Measure): number {
  if (!readout || readout.total === 0) return Number.NaN;
  if (which === "delta") {
    if (!(readout.meanDelta > 0)) return Number.NaN;
    return placeOf(readout.meanDelta, threshold.value);
  }
  if (which === "sparsity") return readout.prunable > 0 ? readout.pruned / readout.prunable : Number.NaN;
  const count = which === "violated" ? readout.violated : readout.counts[stateCode(which)];
  return count / readout.total;
}

/** The value behind a position. */
function valueText(readout: Readout | null, which: Measure): string {
  const place = position(readout, which);
  if (!readout || Number.isNaN(place)) return "no value";
  if (which === "delta") return formatNumber(readout.meanDelta);
  return which === "sparsity" ? (sparsityText(readout) ?? "no value") : `${(100 * place).toFixed(1)}%`;
}

function readRow(run: Run, layerIds: string[], step: number): Readout | null {
  const overview = overviewOf(run.name).value;
  const series = overview && sumOf(overview, layerIds);
  return series ? readAt(series, step) : null;
}

export function DotsHead() {
  return (
    <div class="dots-head">
      <select
        aria-label="Measure of the dot plot"
        value={measure.value}
        onChange={(event) => update({ measure: event.currentTarget.value as Measure })}
      >
        {Object.entries(TITLES)
          .filter(([value]) => value !== "sparsity" || sparse.value || measure.value === "sparsity")
          .map(([value, title]) => (
            <option key={value} value={value}>
              {title}
            </option>
          ))}
      </select>
      <div class="two">one marker per run, step {formatCount(readStep.value)}</div>
      <div class="axis" aria-hidden="true" style={{ left: `${PADDING}px`, width: `${DOTS_WIDTH - 2 * PADDING - 8}px` }}>
        {measure.value === "delta" ? (
          <>
            <span class="tick start">{formatNumber(threshold.value)}</span>
            <span class="tick end">≥ {formatNumber(scaleTop(threshold.value))}</span>
          </>
        ) : (
          <>
            <span class="tick start">0</span>
            <span class="tick" style={{ left: "50%" }}>
              50
            </span>
            <span class="tick end">100%</span>
          </>
        )}
      </div>
    </div>
  );
}

export function DotsColumn({ window, width }: { window: Window; width: number }) {
  const step = readStep.value;
  const which = measure.value;
  const total = rows.value[0]?.layers ?? [];
  const words = shownRuns.value.map((run) => `${run.name} ${valueText(readRow(run, total, cursor.value), which)}`);
  return (
    <div class="dots-column">
      <Canvas
        label={`${TITLES[which]} at step ${formatCount(cursor.value)}, all layers: ${words.join(", ")}`}
        width={width}
        height={window.bottom - window.top}
        style={{ top: `${window.top}px` }}
        inputs={[
          window,
          step,
          which,
          theme.value,
          shownRuns.value,
          ...shownRuns.value.map((run) => overviewOf(run.name).value),
        ]}
        draw={(context, w, _h, ratio) => {
          context.setTransform(ratio, 0, 0, ratio, 0, 0);
          for (const place of window.places) {
            const y = Math.round(place.stripTop + place.stripHeight / 2 - window.top);
            const dots = shownRuns.value.map((run) => ({
              position: position(readRow(run, place.row.layers, step), which),
              color: run.color,
              shape: run.shape,
            }));
            drawDots(context, PADDING, y, w - 2 * PADDING - 8, dots, theme.value);
          }
          context.setTransform(1, 0, 0, 1, 0, 0);
        }}
      />
    </div>
  );
}
