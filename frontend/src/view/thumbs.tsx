/** The same layer in the other runs, small. */

import { useMemo } from "preact/hooks";
import { drawCells } from "../draw/heatmap";
import { pixelsOf } from "../draw/palette";
import { makeRaster, putRaster } from "../draw/raster";
import { formatCount, formatShare } from "../model/format";
import { toPixel } from "../model/scale";
import { readAt } from "../model/series";
import { orderRows } from "../model/sort";
import { STATE_NAMES } from "../model/states";
import { Failure, Marker, RunName, Skeleton } from "./bits";
import { Canvas, useSize } from "./canvas";
import { cursor, readStep } from "./cursor";
import { cellSeries, cellSummary, cellsOf, layerIn, type Run, range, scaleOf, shownRuns } from "./data";
import { mode, order, theme, update } from "./store";
import { largest, sharesText } from "./words";

const HEIGHT = 72;

function Thumbnail({ run, layer }: { run: Run; layer: string }) {
  const { ref, size } = useSize<HTMLDivElement>();
  const { value: cells, error } = cellsOf(run.name, layer);
  const rows = useMemo(() => (cells ? orderRows(cellSummary(cells), order.value) : null), [cells, order.value]);
  const readout = cells ? readAt(cellSeries(cells), readStep.value) : null;
  const top = readout && readout.total > 0 ? largest(readout)[0] : null;
  const x = toPixel(scaleOf(size.width), readStep.value);
  return (
    <button type="button" class="thumb" title={`Show ${run.name}`} onClick={() => update({ run: run.name })}>
      <span class="thumb-head">
        <Marker color={run.color} shape={run.shape} size={9} />
        <RunName text={run.name} />
        <span class="sub">
          {top && readout ? `${formatShare(top.count, readout.total)} ${STATE_NAMES[top.state]}` : ""}
        </span>
      </span>
      <div class="thumb-plot" ref={ref} style={{ height: `${HEIGHT}px` }}>
        {error && !cells ? <Failure text={error} /> : null}
        {!cells && !error ? <Skeleton height={HEIGHT} /> : null}
        {cells && rows && rows.length > 0 ? (
          <Canvas
            label={`${run.name} at step ${formatCount(cursor.value)}: ${sharesText(readAt(cellSeries(cells), cursor.value))}`}
            width={size.width}
            height={HEIGHT}
            inputs={[cells, rows, mode.value, theme.value, ...range.value]}
            draw={(context, w, h, ratio) => {
              const raster = makeRaster(Math.round(w * ratio), Math.round(h * ratio), ratio);
              const box = { x: 0, y: 0, width: raster.width, height: raster.height };
              const style = { mode: mode.value, threshold: cells.header.threshold, pixels: pixelsOf(theme.value) };
              drawCells(raster, box, cells, rows, scaleOf(w), style);
              putRaster(context, raster);
            }}
          />
        ) : null}
        {x >= 0 && x <= size.width ? <i class="crosshair" style={{ left: `${x}px` }} /> : null}
      </div>
    </button>
  );
}

export function Thumbnails({ layer, run }: { layer: string; run: Run }) {
  const others = shownRuns.value.filter((other) => other.name !== run.name && layerIn(other, layer));
  if (others.length === 0) return null;
  return (
    <div class="thumbs" role="group" aria-label="The same layer in the other runs">
      {others.map((other) => (
        <Thumbnail key={other.name} run={other} layer={layer} />
      ))}
    </div>
  );
}
