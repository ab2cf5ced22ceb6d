/** The same layer in the other runs, small. */

import { formatCount, formatShare } from "../model/format";
import { toPixel } from "../model/scale";
import { readAt } from "../model/series";
import { STATE_NAMES } from "../model/states";
import { Failure, Marker, RunName, Skeleton } from "./bits";
import { useSize } from "./canvas";
import { CellsCanvas } from "./cellscanvas";
import { cursor, readStep } from "./cursor";
import { cellSeries, cellsOf, layerIn, type Run, scaleOf, shownRuns } from "./data";
import { allRows } from "./roworder";
import { mode, update } from "./store";
import { largest, sharesText } from "./words";

const HEIGHT = 72;

function Thumbnail({ run, layer }: { run: Run; layer: string }) {
  const { ref, size } = useSize<HTMLDivElement>();
  const { value: cells, error } = cellsOf(run.name, layer);
  const rows = cells ? allRows(run, layer, cells) : null;
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
          <CellsCanvas
            label={`${run.name} at step ${formatCount(cursor.value)}: ${sharesText(readAt(cellSeries(cells), cursor.value))}`}
            cells={cells}
            rows={rows}
            mode={mode.value}
            width={size.width}
            height={HEIGHT}
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
