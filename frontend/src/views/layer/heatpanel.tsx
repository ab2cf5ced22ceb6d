/** Strip, heatmap and "Δ now" of one layer in one run, on one axis of steps. */

import { useRef } from "preact/hooks";
import { type Cells, figuresAt, recordAt } from "../../data/cells";
import { formatCount } from "../../data/format";
import { toStep } from "../../data/scale";
import { drawBars } from "../../draw/heatmap";
import { drawLayerStrip } from "../../draw/strip";
import { pixelsOf } from "../../draw/theme";
import { Axis } from "../../parts/axis";
import { RasterCanvas, useSize } from "../../parts/canvas";
import { CellsCanvas } from "../../parts/cellscanvas";
import { Crosshair, RowLine } from "../../parts/crosshair";
import { startDrag, ZoomBox } from "../../parts/drag";
import { differencesText, sharesText, stepsText, stepText } from "../../parts/words";
import { baselineRun } from "../../state/baseline";
import { cursor, setStep } from "../../state/cursor";
import { dotStep } from "../../state/followers";
import { type Run, scaleOf } from "../../state/runs";
import { channel, hover, mode, rowZoom, theme, update } from "../../state/store";
import { Flags } from "./flags";
import { Gutter, Violations } from "./heatgutter";

export interface HeatProps {
  run: Run;
  cells: Cells;
  /** What the heatmap shows in their place: differences to the baseline. */
  differences: Cells | null;
  /** The channels to draw, from the top. */
  rows: Uint32Array;
}

interface Sized extends HeatProps {
  width: number;
  height: number;
}

function StripCanvas({ run, cells, width }: { run: Run; cells: Cells; width: number }) {
  const figures = figuresAt(cells, cursor.value);
  const label = `${run.name}, all channels at ${figures ? stepsText(figures) : stepText(cursor.value)}: ${sharesText(figures)}`;
  return (
    <RasterCanvas
      label={label}
      width={width}
      height={58}
      inputs={[cells, theme.value]}
      steps
      paint={(raster, box, w) => drawLayerStrip(raster, box, cells, scaleOf(w), pixelsOf(theme.value))}
    />
  );
}

function HeatCanvas({ run, cells, differences, rows, width, height }: Sized) {
  const record = recordAt(cells, cursor.value);
  const label =
    `${run.name}: ${formatCount(rows.length)} channels over ${formatCount(cells.records)} records. ` +
    `At step ${formatCount(cursor.value)}: ${record < 0 ? "no record" : sharesText(figuresAt(cells, cursor.value))}` +
    (differences && record >= 0 ? `. Against ${baselineRun.value?.name}: ${differencesText(differences, record)}` : "");
  return (
    <CellsCanvas
      label={label}
      cells={differences ?? cells}
      differences={differences !== null}
      rows={rows}
      mode={mode.value}
      width={width}
      height={height}
    />
  );
}

function BarsCanvas({ cells, rows, width, height }: Sized) {
  const step = dotStep.value;
  const record = recordAt(cells, step);
  return (
    <RasterCanvas
      label={`Relative delta of each channel at step ${formatCount(cursor.value)}, logarithmic from the threshold on`}
      width={width}
      height={height}
      inputs={[cells, rows, record, theme.value]}
      paint={(raster, box) => drawBars(raster, box, cells, rows, record, cells.header.threshold, pixelsOf(theme.value))}
    />
  );
}

/** Crosshair over strip and heatmap, the line of the channel, and its pill. */
function Cross({ rows, width, height, top }: Sized & { top: number }) {
  const own = hover.value?.channel ?? channel.value;
  const row = own === null ? -1 : rows.indexOf(own);
  const y = top + ((row + 0.5) / rows.length) * height;
  return (
    <>
      <Crosshair width={width} />
      {row >= 0 ? (
        <RowLine y={y}>
          <span class="row-pill">#{own}</span>
        </RowLine>
      ) : null}
    </>
  );
}

const GUTTER = 64;
const STRIP = 58;
const SPACE = 6;
const BARS = 54;

export function HeatPanel({ run, cells, differences, rows }: HeatProps) {
  const { ref, size } = useSize<HTMLDivElement>();
  const plot = useRef<HTMLDivElement>(null);
  const width = Math.max(0, size.width - GUTTER - BARS - 10);
  const height = Math.max(0, size.height - 16 - STRIP - SPACE - 26);
  const sized = { run, cells, differences, rows, width, height };
  const from = rows.length < cells.channels ? (rowZoom.value?.[0] ?? 0) : 0;
  const band = { top: STRIP + SPACE, height, from, count: rows.length };
  const where = (event: MouseEvent) => {
    const box = plot.current!.getBoundingClientRect();
    const x = Math.min(width - 0.01, Math.max(0, event.clientX - box.left));
    const y = event.clientY - box.top - STRIP - SPACE;
    const row = Math.min(rows.length - 1, Math.floor((y / height) * rows.length));
    const step = toStep(scaleOf(width), x);
    const record = recordAt(cells, step);
    return {
      step: record < 0 ? Math.floor(step) : cells.steps[record],
      channel: y >= 0 && y < height ? rows[row] : null,
    };
  };
  return (
    <div class="heat" ref={ref}>
      {width > 0 ? (
        <>
          <div class="heat-gutter" style={{ height: `${size.height}px` }}>
            <div class="share-axis" style={{ top: "16px", height: `${STRIP}px` }} aria-hidden="true">
              <span>100%</span>
              <span>50</span>
              <span>0</span>
            </div>
            <div class="gutter-rows" style={{ top: `${16 + STRIP + SPACE}px`, height: `${height}px` }}>
              <Gutter cells={cells} rows={rows} height={height} />
            </div>
          </div>
          <div class="heat-middle">
            <Flags cells={cells} width={width} />
            {/* biome-ignore lint/a11y/useKeyWithClickEvents: the keys of the whole page do the same */}
            {/* biome-ignore lint/a11y/noStaticElementInteractions: the keys of the whole page do the same */}
            <div
              ref={plot}
              class="heat-plot"
              style={{ width: `${width}px`, height: `${STRIP + SPACE + height}px` }}
              onPointerMove={(event) => {
                const { step, channel } = where(event);
                hover.value = { step, run: run.name, row: null, channel, x: event.clientX, y: event.clientY };
              }}
              onPointerLeave={() => (hover.value = null)}
              onPointerDown={(event) => startDrag(event, width, band)}
              onClick={(event) => {
                const { step, channel } = where(event);
                setStep(step);
                if (channel !== null) update({ channel });
              }}
            >
              <StripCanvas run={run} cells={cells} width={width} />
              <div style={{ height: `${SPACE}px` }} />
              <HeatCanvas {...sized} />
              <Cross {...sized} top={STRIP + SPACE} />
              <ZoomBox width={width} band={band} />
            </div>
            <Axis width={width} pill count={Math.max(3, Math.floor(width / 80))} />
          </div>
          <div class="heat-bars">
            <span class="bars-title" style={{ top: `${16 + STRIP - 14}px` }}>
              Δ now
            </span>
            <div class="bars-plot" style={{ top: `${16 + STRIP + SPACE}px`, height: `${height}px` }}>
              <BarsCanvas {...sized} width={BARS - 20} />
              <Violations cells={cells} rows={rows} height={height} />
            </div>
          </div>
        </>
      ) : null}
    </div>
  );
}
