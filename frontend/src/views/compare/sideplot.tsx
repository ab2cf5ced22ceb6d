/** A heatmap of the Compare view with pointer, crosshair, zoom, and the line of the channel. */

import type { ComponentChildren } from "preact";
import type { Cells } from "../../data/cells";
import { recordAt } from "../../data/cells";
import { toStep } from "../../data/scale";
import { Axis } from "../../parts/axis";
import { Crosshair, RowLine } from "../../parts/crosshair";
import { startDrag, ZoomBox } from "../../parts/drag";
import { scaleOf } from "../../state/runs";
import { channel, hover, rowZoom, update } from "../../state/store";

interface Props {
  cells: Cells;
  rows: Uint32Array;
  /** The lines of the tooltip. */
  tip: (channel: number, step: number) => string[];
  width: number;
  height: number;
  children: ComponentChildren;
}

export function CellsPlot({ cells, rows, tip, width, height, children }: Props) {
  const own = hover.value?.channel ?? channel.value;
  const row = own === null ? -1 : rows.indexOf(own);
  const from = rows.length < cells.channels ? (rowZoom.value?.[0] ?? 0) : 0;
  const band = { top: 0, height, from, count: rows.length };
  const where = (event: MouseEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const step = toStep(scaleOf(width), Math.min(width - 0.01, Math.max(0, event.clientX - box.left)));
    const record = recordAt(cells, step);
    const place = Math.floor(((event.clientY - box.top) / height) * rows.length);
    return {
      step: record < 0 ? Math.floor(step) : cells.steps[record],
      channel: rows[Math.max(0, Math.min(rows.length - 1, place))],
    };
  };
  return (
    <>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the keys of the whole page do the same */}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the keys of the whole page do the same */}
      <div
        class="heat-plot"
        style={{ width: `${width}px`, height: `${height}px` }}
        onPointerMove={(event) => {
          const at = where(event);
          const lines = tip(at.channel, at.step);
          hover.value = { ...at, run: null, row: null, x: event.clientX, y: event.clientY, tip: lines };
        }}
        onPointerLeave={() => (hover.value = null)}
        onPointerDown={(event) => startDrag(event, width, band)}
        onClick={(event) => update(where(event))}
      >
        {children}
        <Crosshair width={width} />
        {row >= 0 ? <RowLine y={((row + 0.5) / rows.length) * height} /> : null}
        <ZoomBox width={width} band={band} />
      </div>
      <Axis width={width} pill count={Math.max(2, Math.floor(width / 70))} />
    </>
  );
}
