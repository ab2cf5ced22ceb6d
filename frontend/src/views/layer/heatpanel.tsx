/** Strip, heatmap and "Δ now" of one layer in one run, on one axis of steps. */

import { type Cells, figuresAt, recordAt } from "../../data/cells";
import { formatCount } from "../../data/format";
import { drawBars } from "../../draw/heatmap";
import { drawLayerStrip } from "../../draw/strip";
import { pixelsOf } from "../../draw/theme";
import { Axis } from "../../parts/axis";
import { RasterCanvas, useSize } from "../../parts/canvas";
import { CellsCanvas, CellsPlot } from "../../parts/cellsplot";
import { differencesText, sharesText, stepsText, stepText } from "../../parts/words";
import { baselineRun } from "../../state/baseline";
import { cursor } from "../../state/cursor";
import { dotStep } from "../../state/followers";
import { type Run, scaleOf } from "../../state/runs";
import { mode, theme } from "../../state/store";
import { Flags, Gutter, Violations } from "./heatgutter";

const GUTTER = 64;
const STRIP = 58;
const SPACE = 6;
const BARS = 54;

interface HeatProps {
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
      height={STRIP}
      inputs={[cells, theme.value]}
      steps
      paint={(area, w) => drawLayerStrip(area, cells, scaleOf(w), pixelsOf(theme.value))}
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
      paint={(area) => drawBars(area, cells, rows, record, cells.header.threshold, pixelsOf(theme.value))}
    />
  );
}

export function HeatPanel({ run, cells, differences, rows }: HeatProps) {
  const { ref, size } = useSize<HTMLDivElement>();
  const width = Math.max(0, size.width - GUTTER - BARS - 10);
  const height = Math.max(0, size.height - 16 - STRIP - SPACE - 26);
  const sized = { run, cells, differences, rows, width, height };
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
            <CellsPlot cells={cells} rows={rows} run={run.name} width={width} height={height} top={STRIP + SPACE} pill>
              <StripCanvas run={run} cells={cells} width={width} />
              <div style={{ height: `${SPACE}px` }} />
              <HeatCanvas {...sized} />
            </CellsPlot>
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
