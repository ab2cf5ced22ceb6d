/** The same layer in the other runs, small. */

import { type Cells, figuresAt } from "../../data/cells";
import { formatCount, formatShare } from "../../data/format";
import { formatOverlap, pairOf, pairTexts } from "../../data/overlap";
import { STATE_NAMES } from "../../data/states";
import { drawParts } from "../../draw/heatmap";
import { RasterCanvas, useSize } from "../../parts/canvas";
import { Crosshairs } from "../../parts/plot";
import { Lost, Marker, OldSign, RunName, Skeleton, Status } from "../../parts/widgets";
import { largest, sharesText } from "../../parts/words";
import type { OverlapAnswer } from "../../server/types";
import { cellsOf, layerCells } from "../../state/answers";
import { cursor } from "../../state/cursor";
import { numberSteps } from "../../state/followers";
import { askOverlap, MOST_RUNS } from "../../state/overlaps";
import { NOT_LOADED } from "../../state/resource";
import { allRows } from "../../state/rows";
import { layerIn, type Run, scaleOf, shownRuns } from "../../state/runs";
import { mode, unit, update } from "../../state/store";

const HEIGHT = 72;
const GAP = 10;
const NARROWEST = 120;

/**
 * How much of the layer's masks two runs share, if that is meaningful: something is pruned, and the origin is the same.
 *
 * @returns the overlap, and what it means next to its value by chance.
 */
function overlapTexts(answer: OverlapAnswer | null, run: Run, other: Run): [string, string] | null {
  const pair = answer && pairOf(answer, run.name, other.name);
  if (!answer || !pair?.comparable) return null;
  if ([pair.a, pair.b].every((place) => answer.runs[place].kept === answer.runs[place].elements)) return null;
  const [overlap, chance] = [formatOverlap(pair.overlap), formatOverlap(pair.chance)];
  const hint = `Mask overlap ${overlap} at step ${formatCount(answer.step)}, by chance ${chance}.`;
  return [`mask IoU ${overlap}`, [hint, ...pairTexts(pair, answer.runs, answer.unit, answer.mask)].join(" ")];
}

/** Most of its channels, at the step under the pointer. */
function Largest({ cells }: { cells: Cells | null }) {
  const figures = cells && figuresAt(cells, numberSteps[0].value);
  if (!figures || figures.total === 0) return null;
  const [{ count, state }] = largest(figures);
  return `${formatShare(count, figures.total)} ${STATE_NAMES[state]}`;
}

function Thumbnail(props: { run: Run; layer: string; overlap: [string, string] | null; width: number }) {
  const { run, layer, width } = props;
  const { value: cells, error } = cellsOf(run.name, layer);
  const [overlap, hint] = props.overlap ?? [];
  return (
    <button
      type="button"
      class="thumb"
      style={{ width: `${width}px` }}
      title={`${hint ? `${hint} ` : ""}Show ${run.name}`}
      onClick={() => update({ run: run.name })}
    >
      <span class="thumb-head">
        <Marker color={run.color} shape={run.shape} size={9} />
        <RunName run={run} />
        <span class="sub">{overlap ?? <Largest cells={cells} />}</span>
      </span>
      <div class="thumb-plot" style={{ height: `${HEIGHT}px` }}>
        {error && !cells ? <span class="lost">{NOT_LOADED}</span> : null}
        {!cells && !error ? <Skeleton height={HEIGHT} /> : null}
      </div>
    </button>
  );
}

/** The pictures of all thumbnails: a canvas for each would be a layer that every frame has to compose. */
function Pictures({ runs, layer, width }: { runs: readonly Run[]; layer: string; width: number }) {
  const thumbs = runs.map((run) => {
    const cells = layerCells(run, layer);
    return { run, cells, rows: cells && allRows(run, layer, cells) };
  });
  const label = thumbs.flatMap(({ run, cells }) =>
    cells ? `${run.name}: ${sharesText(figuresAt(cells, cursor.value))}` : [],
  );
  return (
    <RasterCanvas
      class="thumb-pictures"
      label={`At step ${formatCount(cursor.value)}, ${label.join(". ")}`}
      width={runs.length * (width + GAP) - GAP}
      height={HEIGHT}
      inputs={[layer, mode.value, runs.length, ...thumbs.flatMap(({ cells, rows }) => [cells, rows])]}
      steps
      paint={function* ({ area, ratio, pixels }) {
        for (const [at, { cells, rows }] of thumbs.entries()) {
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
  const overlap = askOverlap(unit.value ?? "weights", compared, layer);
  const answers = others.map((other) => [other.name, cellsOf(other.name, layer)] as const);
  const width = Math.max(NARROWEST, Math.floor((size.width + GAP) / others.length) - GAP);
  return (
    <>
      <div class="thumbs" role="group" aria-label="The same layer in the other runs" ref={ref}>
        {others.map((other) => (
          <Thumbnail
            key={other.name}
            run={other}
            layer={layer}
            overlap={overlapTexts(overlap.value, run, other)}
            width={width}
          />
        ))}
        <Pictures runs={others} layer={layer} width={width} />
        <Crosshairs width={width} pitch={width + GAP} count={others.length} height={HEIGHT} />
      </div>
      <Status of={answers} />
      {!overlap.value && overlap.error ? (
        <p class="note">
          <Lost why={overlap.error} what={`mask overlap ${NOT_LOADED}`} />
        </p>
      ) : (
        <OldSign of={[overlap]} />
      )}
    </>
  );
}
