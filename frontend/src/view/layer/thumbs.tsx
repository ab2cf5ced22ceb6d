/** The same layer in the other runs, small. */

import { seriesOf } from "../../model/cells";
import { formatCount, formatShare } from "../../model/format";
import { formatOverlap, pairOf, pairTexts } from "../../model/overlap";
import { toPixel } from "../../model/scale";
import { readAt } from "../../model/series";
import { STATE_NAMES } from "../../model/states";
import type { OverlapAnswer } from "../../wire/types";
import { askOverlap } from "../compare/overlaps";
import { MOST_RUNS } from "../compare/pair";
import { Marker, RunName, Skeleton } from "../shared/bits";
import { useSize } from "../shared/canvas";
import { CellsCanvas } from "../shared/cellscanvas";
import { Crosshair } from "../shared/crosshair";
import { largest, sharesText } from "../shared/words";
import { cursor, readStep } from "../state/cursor";
import { cellsOf, layerIn, type Run, scaleOf, shownRuns } from "../state/data";
import { mode, unit, update } from "../state/store";
import { allRows } from "./roworder";

const HEIGHT = 72;

interface Overlap {
  text: string;
  /** What it means, and its value by chance. */
  hint: string;
}

/** How much of the layer's masks two runs share, where that says anything: something is pruned, the origin is one. */
function overlapTo(answer: OverlapAnswer | null, run: Run, other: Run): Overlap | null {
  const pair = answer && pairOf(answer, run.name, other.name);
  if (!answer || !pair?.comparable) return null;
  if ([pair.a, pair.b].every((at) => answer.runs[at].kept === answer.runs[at].elements)) return null;
  const said = pairTexts(pair, answer.runs, answer.unit, answer.mask);
  const chance = `Mask overlap ${formatOverlap(pair.overlap)} at step ${formatCount(answer.step)}, by chance ${formatOverlap(pair.chance)}.`;
  return { text: `mask IoU ${formatOverlap(pair.overlap)}`, hint: [chance, ...said].join(" ") };
}

function Thumbnail({ run, layer, overlap }: { run: Run; layer: string; overlap: Overlap | null }) {
  const { ref, size } = useSize<HTMLDivElement>();
  const { value: cells, error } = cellsOf(run.name, layer);
  const rows = cells ? allRows(run, layer, cells) : null;
  const readout = cells ? readAt(seriesOf(cells), readStep.value) : null;
  const top = readout && readout.total > 0 ? largest(readout)[0] : null;
  const x = toPixel(scaleOf(size.width), readStep.value);
  return (
    <button
      type="button"
      class="thumb"
      title={`${overlap ? `${overlap.hint} ` : ""}Show ${run.name}`}
      onClick={() => update({ run: run.name })}
    >
      <span class="thumb-head">
        <Marker color={run.color} shape={run.shape} size={9} />
        <RunName text={run.name} />
        <span class="sub">
          {overlap?.text ??
            (top && readout ? `${formatShare(top.count, readout.total)} ${STATE_NAMES[top.state]}` : "")}
        </span>
      </span>
      <div class="thumb-plot" ref={ref} style={{ height: `${HEIGHT}px` }}>
        {error && !cells ? <span class="sub">{error}</span> : null}
        {!cells && !error ? <Skeleton height={HEIGHT} /> : null}
        {cells && rows && rows.length > 0 ? (
          <CellsCanvas
            label={`${run.name} at step ${formatCount(cursor.value)}: ${sharesText(readAt(seriesOf(cells), cursor.value))}`}
            cells={cells}
            rows={rows}
            mode={mode.value}
            width={size.width}
            height={HEIGHT}
          />
        ) : null}
        <Crosshair x={x} width={size.width} />
      </div>
    </button>
  );
}

export function Thumbnails({ layer, run }: { layer: string; run: Run }) {
  const others = shownRuns.value.filter((other) => other.name !== run.name && layerIn(other, layer));
  if (others.length === 0) return null;
  const compared = [run, ...others.slice(0, MOST_RUNS - 1)];
  const { value } = askOverlap(unit.value ?? "weights", compared, layer);
  return (
    <div class="thumbs" role="group" aria-label="The same layer in the other runs">
      {others.map((other) => (
        <Thumbnail key={other.name} run={other} layer={layer} overlap={overlapTo(value, run, other)} />
      ))}
    </div>
  );
}
