/** Channels over steps, coloured by state and delta: a heatmap, and its frame. */

import type { ComponentChildren } from "preact";
import { type Cells, recordAt } from "../data/cells";
import type { Mode } from "../data/urlstate";
import { aliveStyle, differenceStyle } from "../draw/difference";
import { drawParts } from "../draw/heatmap";
import { channel, hover, rowZoom, theme, update } from "../state/store";
import { RasterCanvas } from "./canvas";
import { Plot } from "./plot";
import { movedTo } from "./widgets";

interface CanvasProps {
  /** A sentence that says what the picture shows. */
  label: string;
  cells: Cells;
  /** The channels to draw, from the top. */
  rows: Uint32Array;
  mode: Mode;
  /** Whether the cells are differences to the baseline. */
  differences?: boolean;
  /** The colours of two runs, when the cells show in which of them a channel remains. */
  alive?: readonly [string, string];
  width: number;
  height: number;
}

export function CellsCanvas({ cells, rows, mode, differences, alive, ...rest }: CanvasProps) {
  return (
    <RasterCanvas
      {...rest}
      inputs={[cells, rows, mode, alive?.join()]}
      steps
      paint={({ area, scale, pixels }) => {
        const own = { mode, threshold: cells.header.threshold, pixels };
        const style = alive ? aliveStyle(theme.value, alive) : differences ? differenceStyle(theme.value) : own;
        return drawParts(area, cells, rows, scale, style);
      }}
    />
  );
}

/** The line of the channel under the pointer, or of the chosen one. */
function ChannelLine({ rows, height, top = 0, pill }: Pick<PlotProps, "rows" | "height" | "top" | "pill">) {
  const shown = hover.value?.channel ?? channel.value;
  const row = shown === null ? -1 : rows.indexOf(shown);
  if (row < 0) return null;
  return (
    <div ref={movedTo(0, Math.floor(top + ((row + 0.5) / rows.length) * height))} class="row-line">
      {pill ? <span class="row-pill">#{shown}</span> : null}
    </div>
  );
}

interface PlotProps {
  cells: Cells;
  rows: Uint32Array;
  /** The run whose channels the tooltip describes; otherwise `tip` gives its lines. */
  run?: string;
  tip?: (channel: number, step: number) => string[];
  width: number;
  /** Of the rows; above them there may be another picture. */
  height: number;
  top?: number;
  /** Whether the number of a channel is written at its line. */
  pill?: boolean;
  children: ComponentChildren;
}

/** Around a heatmap: reads and sets step and channel, zooms into both. */
export function CellsPlot({ cells, rows, run, tip, width, height, top = 0, pill, children }: PlotProps) {
  const from = rows.length < cells.channels ? (rowZoom.value?.[0] ?? 0) : 0;
  return (
    <Plot
      class="heat-plot"
      width={width}
      style={{ height: `${top + height}px` }}
      band={{ top, height, from, count: rows.length }}
      read={(pointed, y) => {
        const record = recordAt(cells, pointed);
        const step = record < 0 ? Math.floor(pointed) : cells.steps[record];
        const own = rows[Math.floor(((y - top) / height) * rows.length)];
        if (own === undefined) return { step, run };
        return { step, run, channel: own, tip: tip?.(own, step), pick: () => update({ channel: own }) };
      }}
      over={<ChannelLine rows={rows} top={top} height={height} pill={pill} />}
    >
      {children}
    </Plot>
  );
}
