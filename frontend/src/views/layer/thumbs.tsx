/** The same layer in the other runs, small. */

import { type Cells, figuresAt } from "../../data/cells";
import { formatCount, formatShare } from "../../data/format";
import { formatOverlap, pairOf, pairTexts } from "../../data/overlap";
import { STATE_NAMES } from "../../data/states";
import { drawParts } from "../../draw/heatmap";
import { RasterCanvas, useSize } from "../../parts/canvas";
import { Crosshairs } from "../../parts/plot";
import { Marker, RunName, Skeleton } from "../../parts/widgets";
import { largest, sharesText } from "../../parts/words";
import type { OverlapAnswer } from "../../server/types";
import { cellsOf } from "../../state/answers";
import { cursor } from "../../state/cursor";
import { numberSteps } from "../../state/followers";
import { askOverlap, MOST_RUNS } from "../../state/overlaps";
import { allRows } from "../../state/rows";
import { layerIn, type Run, scaleOf, shownRuns } from "../../state/runs";
import { mode, unit, update } from "../../state/store";

const HEIGHT = 72;
const GAP = 10;
const NARROWEST = 120;

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

interface ThumbProps {
  run: Run;
  layer: string;
  overlap: Overlap | null;
  width: number;
}

/** Most of its channels, at the step under the pointer. */
function Largest({ cells }: { cells: Cells | null }) {
  const figures = cells && figuresAt(cells, numberSteps[0].value);
  if (!figures || figures.total === 0) return null;
  const [{ count, state }] = largest(figures);
  return (
    <>
      {formatShare(count, figures.total)} {STATE_NAMES[state]}
    </>
  );
}

function Thumbnail({ run, layer, overlap, width }: ThumbProps) {
  const { value: cells, error } = cellsOf(run.name, layer);
  return (
    <button
      type="button"
      class="thumb"
      style={{ width: `${width}px` }}
      title={`${overlap ? `${overlap.hint} ` : ""}Show ${run.name}`}
      onClick={() => update({ run: run.name })}
    >
      <span class="thumb-head">
        <Marker color={run.color} shape={run.shape} size={9} />
        <RunName text={run.short} />
        <span class="sub">{overlap?.text ?? <Largest cells={cells} />}</span>
      </span>
      <div class="thumb-plot" style={{ height: `${HEIGHT}px` }}>
        {error && !cells ? <span class="sub">{error}</span> : null}
        {!cells && !error ? <Skeleton height={HEIGHT} /> : null}
      </div>
    </button>
  );
}

/** The pictures of all thumbnails: a canvas for each would be a layer that every frame has to compose. */
function Pictures({ runs, layer, width }: { runs: readonly Run[]; layer: string; width: number }) {
  const found = runs.map((run) => {
    const { value: cells } = cellsOf(run.name, layer);
    return { run, cells, rows: cells && allRows(run, layer, cells) };
  });
  const label = found.flatMap(({ run, cells }) =>
    cells ? `${run.name}: ${sharesText(figuresAt(cells, cursor.value))}` : [],
  );
  return (
    <RasterCanvas
      class="thumb-pictures"
      label={`At step ${formatCount(cursor.value)}, ${label.join(". ")}`}
      width={runs.length * (width + GAP) - GAP}
      height={HEIGHT}
      inputs={[layer, mode.value, runs.length, ...found.flatMap(({ cells, rows }) => [cells, rows])]}
      steps
      paint={function* ({ area, ratio, pixels }) {
        for (const [at, { cells, rows }] of found.entries()) {
          if (!cells || !rows?.length) continue;
          const place = { ...area, x: Math.round(at * (width + GAP) * ratio), width: Math.round(width * ratio) };
          const style = { mode: mode.value, threshold: cells.header.threshold, pixels };
          yield* drawParts(place, cells, rows, scaleOf(width), style);
        }
      }}
    />
  );
}

export function Thumbnails({ layer, run }: { layer: string; run: Run }) {
  const { ref, size } = useSize<HTMLDivElement>();
  const others = shownRuns.value.filter((other) => other.name !== run.name && layerIn(other, layer));
  if (others.length === 0) return null;
  const compared = [run, ...others.slice(0, MOST_RUNS - 1)];
  const { value } = askOverlap(unit.value ?? "weights", compared, layer);
  const width = Math.max(NARROWEST, Math.floor((size.width + GAP) / others.length) - GAP);
  return (
    <div class="thumbs" role="group" aria-label="The same layer in the other runs" ref={ref}>
      {others.map((other) => (
        <Thumbnail key={other.name} run={other} layer={layer} overlap={overlapTo(value, run, other)} width={width} />
      ))}
      <Pictures runs={others} layer={layer} width={width} />
      <Crosshairs width={width} pitch={width + GAP} count={others.length} height={HEIGHT} />
    </div>
  );
}
