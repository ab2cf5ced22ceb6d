/** Strip, heatmap and "Δ now" of one layer in one run, on one axis of steps. */

import { useMemo } from "preact/hooks";
import { ABSENT } from "../../data/absent";
import { type Cells, figuresAt, flagText, recordAt, summarise } from "../../data/cells";
import { formatCount } from "../../data/format";
import { toPixel } from "../../data/scale";
import { segmentsOf } from "../../data/sort";
import { STATE_NAMES } from "../../data/states";
import { drawBars } from "../../draw/heatmap";
import { drawLayerStrip } from "../../draw/strip";
import { Axis } from "../../parts/axis";
import { RasterCanvas, type Size, Sized } from "../../parts/canvas";
import { CellsCanvas, CellsPlot } from "../../parts/cellsplot";
import { Icon } from "../../parts/widgets";
import { differencesText, sharesText, stepsText, stepText } from "../../parts/words";
import type { LayerEvent } from "../../server/types";
import { baselineRun } from "../../state/baseline";
import { cursor } from "../../state/cursor";
import { dotStep } from "../../state/followers";
import { type Run, scaleOf } from "../../state/runs";
import { mode, order, rowsOf, update } from "../../state/store";

const CHARACTER = 5.2;

/** Flags from left to right; a label that would cover the one before is left out, its tick stays. */
function placeFlags(events: readonly LayerEvent[], width: number) {
  const scale = scaleOf(width);
  let right = Number.NEGATIVE_INFINITY;
  return [...events]
    .sort((a, b) => a.step - b.step)
    .map((event) => ({ event, x: toPixel(scale, event.step) }))
    .filter(({ x }) => x >= 0 && x <= width)
    .map(({ event, x }) => {
      const text = flagText(event);
      const half = (text.length * CHARACTER) / 2 + 3;
      const middle = Math.min(Math.max(x, half), width - half);
      const labelled = middle - half > right;
      if (labelled) right = middle + half;
      return { event, x, middle, text: labelled ? text : null };
    });
}

function Flags({ cells, width }: { cells: Cells; width: number }) {
  const { events } = cells.header;
  const textOf = ({ step, text }: LayerEvent) => `step ${formatCount(step)}: ${text}`;
  return (
    <div class="flags" style={{ width: `${width}px` }}>
      <ul class="offscreen" aria-label="Events">
        {events.map((event) => (
          <li key={`${event.kind} ${textOf(event)}`}>{textOf(event)}</li>
        ))}
      </ul>
      {placeFlags(events, width).map(({ event, x, middle, text }) => (
        <div key={textOf(event)} aria-hidden="true" title={textOf(event)}>
          <i class={`flag ${event.kind}`} style={{ left: `${x}px` }} />
          {text !== null ? (
            <span class="flag-text" style={{ left: `${middle}px` }}>
              {text}
            </span>
          ) : null}
        </div>
      ))}
    </div>
  );
}

type RowsProps = { cells: Cells; rows: Uint32Array; height: number };

/** Rows of at least this height have their channel's number next to them. */
const NUMBERED = 11;

/** The channel of each row where there is room; else the first and the last in the order of channels. */
function Numbers({ rows, height }: Omit<RowsProps, "cells">) {
  const each = height / rows.length;
  const numbered = each >= NUMBERED;
  if (!numbered && order.value !== "index") return null;
  const shown = numbered ? Array.from(rows.keys()) : [0, rows.length - 1];
  const top = (row: number) => Math.min(Math.max((row + 0.5) * each, 8), height - 8);
  return (
    <>
      {shown.map((row) => (
        <span key={row} class="gutter-number" style={{ top: `${top(row)}px` }}>
          {formatCount(rows[row])}
        </span>
      ))}
    </>
  );
}

/** What the rows are, on the left of the heatmap: channels, or segments of one state. */
function Gutter({ cells, rows, height }: RowsProps) {
  const summary = summarise(cells);
  // In the order of another run, this one's states are scattered.
  const own = rowsOf.value === null || rowsOf.value === cells.header.run;
  const segments = useMemo(
    () => (own ? segmentsOf(summary, rows, order.value) : []),
    [summary, rows, order.value, own],
  );
  const y = (row: number) => (row / rows.length) * height;
  return (
    <>
      <Numbers rows={rows} height={height} />
      {segments.map(({ from, to, state }) => (
        <div key={from}>
          {from > 0 ? <i class="gutter-tick" style={{ top: `${y(from)}px` }} /> : null}
          {y(to) - y(from) >= 26 ? (
            <span class="gutter-label" style={{ top: `${(y(from) + y(to)) / 2}px` }}>
              {formatCount(to - from)}
              <br />
              {STATE_NAMES[state].replace(/^(reacti|follow|non)/, "$1\u00ad")}
            </span>
          ) : null}
        </div>
      ))}
    </>
  );
}

/** A mark next to each violated row, unless it would cover another mark. */
function Violations({ cells, rows, height }: RowsProps) {
  const { firstViolated } = summarise(cells);
  const marks = useMemo(() => {
    let next = 4;
    return Array.from(rows, (channel, i) => ({ channel, y: ((i + 0.5) / rows.length) * height })).filter((mark) => {
      const shown = firstViolated[mark.channel] >= 0 && mark.y >= next;
      if (shown) next = mark.y + 24;
      return shown;
    });
  }, [firstViolated, rows, height]);
  return (
    <>
      {marks.map(({ channel, y }) => {
        const step = cells.steps[firstViolated[channel]];
        const text = `Channel ${channel} violated since step ${formatCount(step)}`;
        return (
          <button
            key={channel}
            type="button"
            class="violation-mark"
            style={{ top: `${y}px` }}
            aria-label={text}
            title={text}
            onClick={() => update({ channel, step })}
          >
            <Icon name="warning" size={12} />
          </button>
        );
      })}
    </>
  );
}

const GUTTER = 64;
const STRIP = 58;
const SPACE = 6;
const BARS = 54;

interface HeatProps {
  run: Run;
  cells: Cells;
  /** What the heatmap shows instead: differences from the baseline. */
  differences: Cells | null;
  /** The channels to draw, from the top. */
  rows: Uint32Array;
}

function StripCanvas({ run, cells, width }: { run: Run; cells: Cells; width: number }) {
  const figures = figuresAt(cells, cursor.value);
  const label = `${run.name}, all channels at ${figures ? stepsText(figures) : stepText(cursor.value)}: ${sharesText(figures)}`;
  return (
    <RasterCanvas
      label={label}
      width={width}
      height={STRIP}
      inputs={[cells]}
      steps
      paint={({ area, scale, pixels }) => drawLayerStrip(area, cells, scale, pixels)}
    />
  );
}

function HeatCanvas({ run, cells, differences, rows, ...size }: HeatProps & Size) {
  const record = recordAt(cells, cursor.value);
  const label =
    `${run.name}: ${formatCount(rows.length)} channels over ${formatCount(cells.records)} records. ` +
    `At step ${formatCount(cursor.value)}: ${record < 0 ? ABSENT.record : sharesText(figuresAt(cells, cursor.value))}` +
    (differences && record >= 0 ? `. Vs ${baselineRun.value?.name}: ${differencesText(differences, record)}` : "");
  return (
    <CellsCanvas
      label={label}
      cells={differences ?? cells}
      differences={differences !== null}
      rows={rows}
      mode={mode.value}
      {...size}
    />
  );
}

function BarsCanvas({ cells, rows, width, height }: HeatProps & Size) {
  const record = recordAt(cells, dotStep.value);
  return (
    <RasterCanvas
      label={`Relative delta of each channel at step ${formatCount(cursor.value)}, logarithmic from the threshold on`}
      width={width}
      height={height}
      inputs={[cells, rows, record]}
      paint={({ area, pixels }) => drawBars(area, cells, rows, record, cells.header.threshold, pixels)}
    />
  );
}

function Parts({ width: whole, height: panel, ...props }: HeatProps & Size) {
  const { run, cells, rows } = props;
  const width = whole - GUTTER - BARS - 10;
  const height = Math.max(0, panel - 16 - STRIP - SPACE - 26);
  const top = { top: `${16 + STRIP + SPACE}px`, height: `${height}px` };
  return (
    <>
      <div class="heat-gutter" style={{ height: `${panel}px` }}>
        <div class="share-axis" style={{ top: "16px", height: `${STRIP}px` }} aria-hidden="true">
          <span>100%</span>
          <span>50</span>
          <span>0</span>
        </div>
        <div class="gutter-rows" style={top}>
          <Gutter cells={cells} rows={rows} height={height} />
        </div>
      </div>
      <div class="heat-middle">
        <Flags cells={cells} width={width} />
        <CellsPlot cells={cells} rows={rows} run={run.name} width={width} height={height} top={STRIP + SPACE} pill>
          <StripCanvas run={run} cells={cells} width={width} />
          <div style={{ height: `${SPACE}px` }} />
          <HeatCanvas {...props} width={width} height={height} />
        </CellsPlot>
        <Axis width={width} pill count={Math.max(3, Math.floor(width / 80))} />
      </div>
      <div class="heat-bars">
        <span class="bars-title" style={{ top: `${16 + STRIP - 14}px` }}>
          Δ now
        </span>
        <div class="bars-plot" style={top}>
          <BarsCanvas {...props} width={BARS - 20} height={height} />
          <Violations cells={cells} rows={rows} height={height} />
        </div>
      </div>
    </>
  );
}

export const HeatPanel = (props: HeatProps) => (
  <Sized class="heat" least={GUTTER + BARS + 10}>
    {(size) => <Parts {...props} {...size} />}
  </Sized>
);
