/** The dot plot: one chosen measure, a marker per run, for each row. */

import { ABSENT } from "../../data/absent";
import { formatCount, formatFineShare, formatNumber, plural } from "../../data/format";
import type { Row } from "../../data/layers";
import { differenceText, differenceTicks, placeOfDifference, spreadOf } from "../../data/measure";
import { DOTS_WIDTH, type Layout, placeAt, type Window } from "../../data/rowbox";
import { placeOf, scaleTop } from "../../data/scale";
import { MEASURE_TITLES, MEASURES, type Measure } from "../../data/urlstate";
import { type Dot, type DotRow, paintDots } from "../../draw/dots";
import { makeRaster } from "../../draw/raster";
import { Canvas, usePrepared } from "../../parts/canvas";
import { pointAt, pointNowhere } from "../../parts/plot";
import { Button, Icon, Lost, Select } from "../../parts/widgets";
import { stepText } from "../../parts/words";
import { sparse } from "../../state/answers";
import { blocksAt } from "../../state/at";
import { baselineRun, differs, lackingAt, shownMeasure } from "../../state/baseline";
import { cursor } from "../../state/cursor";
import { dotStep, spokenStep } from "../../state/followers";
import { insteadText, NOT_LOADED } from "../../state/resource";
import { groups, type RunGroup, shownRuns, threshold, totalLayers } from "../../state/runs";
import { grouping, measure, sorted, theme, update } from "../../state/store";
import { dotBlock } from "../../state/viewport";

const PADDING = 12;
const AXIS = DOTS_WIDTH - 2 * PADDING - 8;

/** Place of a value on the axis, 0 to 1; NaN where there is none. */
function positionOf(value: number, which: Measure): number {
  if (differs.value) return (1 + placeOfDifference(value, which)) / 2;
  if (which !== "delta") return value;
  return value > 0 ? placeOf(value, threshold.value) : Number.NaN;
}

function textOf(value: number, which: Measure): string {
  if (differs.value) return differenceText(value, which);
  if (Number.isNaN(value)) return ABSENT.value;
  return which === "delta" ? formatNumber(value) : formatFineShare(value, 1);
}

/** The values of the runs of a group: "46.9%", or "46.9% ± 1.2 pp of 3 runs". */
function groupText({ runs }: RunGroup, layers: readonly string[], step: number): string {
  const which = measure.value;
  const lacking = runs.flatMap((run) => lackingAt(run, step) ?? []);
  if (lacking.length === runs.length) return insteadText(lacking[0]);
  const values = runs.map((run) => shownMeasure(run, layers, step));
  if (values.length === 1) return textOf(values[0], which);
  const rest = lacking.length > 0 ? `, ${plural(lacking.length, "run")} ${insteadText(lacking[0])}` : "";
  const spread = spreadOf(values);
  if (!spread) return `${ABSENT.value}${rest}`;
  const mean = textOf(spread.mean, which);
  const share = which !== "delta";
  const deviation = share ? `${(100 * spread.deviation).toFixed(1)} pp` : formatNumber(spread.deviation);
  return `${mean} ± ${Number.isNaN(spread.deviation) ? "–" : deviation} of ${plural(spread.count, "run")}${rest}`;
}

/** What the markers are; how many runs have none as their figures aren't loaded. */
function Markers() {
  const lost = shownRuns.value.flatMap((run) => lackingAt(run, dotStep.value)?.error ?? []);
  if (lost.length > 0) return <Lost why={lost[0]} what={`${plural(lost.length, "run")} ${NOT_LOADED}`} />;
  if (differs.value) return `vs ${baselineRun.value?.name},`;
  return `each marker is a ${grouping.value.pattern ? "group mean" : "run"},`;
}

const title = (): string => `${MEASURE_TITLES[measure.value]}${differs.value ? ` vs ${baselineRun.value?.name}` : ""}`;

/** More groups than these are counted in the tooltip. */
const MOST_LINES = 24;

/** All markers of a row, which may hide one another. */
function tipOf(row: Row, step: number): string[] {
  const lines = groups.value.map((group) => `${group.name}: ${groupText(group, row.layers, step)}`);
  const rest = lines.length - MOST_LINES;
  const shown = rest > 0 ? [...lines.slice(0, MOST_LINES), `and ${plural(rest, "more run")}`] : lines;
  return [row.kind === "total" ? row.label : row.id, `${title()}, step ${formatCount(step)}`, ...shown];
}

/** Ticks of the axis: place from 0 to 1, and text. */
function ticks(): [number, string][] {
  if (differs.value) {
    // The quarters have no room here.
    const ticks = differenceTicks(measure.value).filter((_, i) => i % 2 === 0);
    return ticks.map(([place, text]) => [(1 + place) / 2, text === "same" ? "0" : text]);
  }
  if (measure.value !== "delta") return [0, 0.5, 1].map((at) => [at, at === 1 ? "100%" : String(100 * at)]);
  return [
    [0, formatNumber(threshold.value)],
    [1, `≥ ${formatNumber(scaleTop(threshold.value))}`],
  ];
}

export function DotsHead() {
  const measures = MEASURES.filter((value) => value !== "sparsity" || sparse.value || measure.value === "sparsity");
  return (
    <div class="dots-head">
      <Select
        label="Measure of the dot plot"
        value={measure.value}
        options={measures.map((value) => [value, MEASURE_TITLES[value]])}
        onPick={(value) => update({ measure: value })}
      />
      <Button
        class="small"
        pressed={sorted.value}
        label={sorted.value ? "Layers in forward order" : "Sort layers by this measure (mean of the selected runs)"}
        onClick={() => update({ sorted: !sorted.peek() })}
      >
        <Icon name="sort" size={16} />
      </Button>
      <div class="two">
        <Markers /> <span>{stepText(dotStep.value)}</span>
      </div>
      <div class="axis" aria-hidden="true" style={{ left: `${PADDING}px`, width: `${AXIS}px` }}>
        {ticks().map(([at, text]) => (
          <span key={at} class={`tick ${at === 0 ? "start" : at === 1 ? "end" : ""}`} style={{ left: `${100 * at}%` }}>
            {text}
          </span>
        ))}
      </div>
    </div>
  );
}

function dotOf({ runs }: RunGroup, layers: readonly string[]): Dot {
  const spread = spreadOf(runs.map((run) => shownMeasure(run, layers, dotStep.value)));
  const position = (value = Number.NaN) => positionOf(value, measure.value);
  const range: Dot["range"] = runs.length > 1 && spread ? [position(spread.low), position(spread.high)] : undefined;
  return { position: position(spread?.mean), color: runs[0].color, shape: runs[0].shape, range };
}

/** The markers of the rows of a window. */
function* dotRows({ places, top }: Window): Generator<DotRow> {
  for (const { row, stripTop, stripHeight } of places) {
    const dots = groups.value.map((group) => dotOf(group, row.layers));
    yield { y: Math.round(stripTop + stripHeight / 2 - top), dots };
  }
}

export function DotsColumn({ windowAt, layout }: { windowAt: (block: number) => Window; layout: Layout }) {
  const words = groups.value.map((group) => `${group.name} ${groupText(group, totalLayers.value, spokenStep.value)}`);
  const window = windowAt(dotBlock.value);
  const draw = usePrepared(dotBlock, windowAt, function* (shown, ratio) {
    const raster = makeRaster(Math.round(DOTS_WIDTH * ratio), Math.round((shown.bottom - shown.top) * ratio), ratio);
    yield* paintDots(raster, ratio, PADDING, AXIS, dotRows(shown), theme.value);
    return raster;
  });
  return (
    <div
      class="dots-column"
      onPointerMove={(event) => {
        const row = placeAt(layout, event.clientY - event.currentTarget.getBoundingClientRect().top)?.row;
        const step = cursor.peek();
        pointAt(event, row ? { step, row: row.id, tip: tipOf(row, step) } : null);
      }}
      onPointerLeave={pointNowhere}
    >
      <Canvas
        whole
        label={`${title()} at step ${formatCount(spokenStep.value)}, all layers: ${words.join(", ")}`}
        width={DOTS_WIDTH}
        height={window.bottom - window.top}
        style={{ top: `${window.top}px` }}
        inputs={[
          window,
          dotStep.value,
          measure.value,
          theme.value,
          differs.value && baselineRun.value,
          groups.value,
          ...blocksAt(baselineRun.value ? [...shownRuns.value, baselineRun.value] : shownRuns.value, dotStep.value),
        ]}
        draw={draw}
      />
    </div>
  );
}
