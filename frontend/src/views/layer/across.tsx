/** One channel in all shown runs: its states as barcodes, its relative delta as lines. */

import { useMemo } from "preact/hooks";
import type { Cells } from "../../data/cells";
import { deltaAt, recordAt } from "../../data/cells";
import { formatCount, formatNumber, formatPower } from "../../data/format";
import { STATE_BITS, STATE_NAMES, VIOLATED } from "../../data/states";
import { decades, drawLines, type Line, levelY } from "../../draw/lines";
import { Axis } from "../../parts/axis";
import { aside, Canvas, useSize } from "../../parts/canvas";
import { Crosshair } from "../../parts/crosshair";
import { stepPointer } from "../../parts/pointer";
import { Marker, RunName } from "../../parts/widgets";
import { cellsOf } from "../../state/answers";
import { cursor } from "../../state/cursor";
import { layerIn, type Run, scaleOf, shownRuns } from "../../state/runs";
import { theme } from "../../state/store";
import { Barcodes } from "./barcodes";

interface Props {
  layer: string;
  channel: number;
  run: Run;
}

interface Found {
  run: Run;
  cells: Cells;
}

/** The runs that have this channel of this layer, as far as their data is there. */
function useRuns(layer: string, channel: number): Found[] {
  return shownRuns.value.flatMap((run) => {
    const cells = layerIn(run, layer) ? cellsOf(run.name, layer).value : null;
    return cells && channel < cells.channels && cells.records > 0 ? [{ run, cells }] : [];
  });
}

function stateText({ run, cells }: Found, channel: number): string {
  const record = recordAt(cells, cursor.value);
  const byte = record < 0 ? 0 : cells.state[channel * cells.records + record];
  return `${run.name}, channel ${channel} at step ${formatCount(cursor.value)}: ${STATE_NAMES[byte & STATE_BITS]}${byte & VIOLATED ? ", violated" : ""}`;
}

export function AcrossRuns({ layer, channel, run }: Props) {
  const { ref, size } = useSize<HTMLDivElement>();
  const width = size.width;
  const found = useRuns(layer, channel);
  return (
    <>
      <h3>
        State across runs <span class="sub">channel {channel}</span>
      </h3>
      <div class="barcodes">
        <div class="barcode-names">
          {found.map((entry) => (
            <div key={entry.run.name} class={entry.run.name === run.name ? "own" : ""} title={entry.run.name}>
              <Marker color={entry.run.color} shape={entry.run.shape} size={9} />
              <RunName text={entry.run.short} />
            </div>
          ))}
        </div>
        <div class="barcode-plots" ref={ref} {...stepPointer(width)}>
          <Barcodes
            codes={found.map((entry) => ({ label: stateText(entry, channel), cells: entry.cells, channel }))}
            height={20}
            width={width}
          />
          <Crosshair width={width} />
        </div>
      </div>
    </>
  );
}

const HEIGHT = 104;
const LEFT = 30;

function toLine(found: Found, channel: number, bold: boolean): Line {
  const { cells, run } = found;
  const row = channel * cells.records;
  const values = Float64Array.from({ length: cells.records }, (_, t) => deltaAt(cells, row + t));
  return { steps: cells.steps, values, color: run.color, bold };
}

export function DeltaLines({ layer, channel, run }: Props) {
  const { ref, size } = useSize<HTMLDivElement>();
  const width = Math.max(0, size.width - LEFT);
  const found = useRuns(layer, channel);
  const own = found.find((entry) => entry.run.name === run.name);
  const drawn = [...found.flatMap((entry) => [entry.cells, entry.run.color]), channel, run.name];
  const lines = useMemo(() => found.map((entry) => toLine(entry, channel, entry === own)), drawn);
  const span = decades(lines);
  const labels = Array.from({ length: span[1] - span[0] + 1 }, (_, i) => span[0] + i);
  const every = Math.ceil(labels.length / 5);
  const record = own ? recordAt(own.cells, cursor.value) : -1;
  const now = own && record >= 0 ? deltaAt(own.cells, channel * own.cells.records + record) : Number.NaN;
  return (
    <>
      <h3>
        Δ current vs past <span class="sub">log scale; gaps are exact zeros</span>
      </h3>
      <div class="lines" ref={ref}>
        <div class="lines-axis" style={{ width: `${LEFT}px`, height: `${HEIGHT}px` }} aria-hidden="true">
          {labels
            .filter((decade) => (span[1] - decade) % every === 0)
            .map((decade) => (
              <span key={decade} style={{ top: `${levelY(10 ** decade, span, HEIGHT)}px` }}>
                {formatPower(10 ** decade)}
              </span>
            ))}
        </div>
        {width > 0 ? (
          <div class="lines-plot" style={{ width: `${width}px` }} {...stepPointer(width)}>
            <Canvas
              whole
              label={`Relative delta of channel ${channel} over steps in ${found.length} runs; in ${run.name} at step ${formatCount(cursor.value)}: ${formatNumber(now)}`}
              width={width}
              height={HEIGHT + 2}
              inputs={[lines, theme.value]}
              steps
              draw={aside((context, w, ratio) => {
                context.setTransform(ratio, 0, 0, ratio, 0, 0);
                return drawLines(context, scaleOf(w), HEIGHT, lines, span, theme.value);
              })}
            />
            <Crosshair width={width} height={HEIGHT} />
            <Axis width={width} pill={false} count={4} />
          </div>
        ) : null}
      </div>
    </>
  );
}
