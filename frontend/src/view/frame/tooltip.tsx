/** The readout at the pointer. */

import { deltaAt, recordAt, seriesOf } from "../../model/cells";
import { formatCount, formatNumber, formatShare } from "../../model/format";
import { differenceText, MEASURE_TITLES } from "../../model/measure";
import { sumOf } from "../../model/overview";
import type { Readout } from "../../model/series";
import { readAt } from "../../model/series";
import { LEGEND, NO_DATA, NONFINITE, STATE_BITS, STATE_NAMES, STATE_TITLES, VIOLATED } from "../../model/states";
import { sparsityText } from "../../model/violations";
import { Icon, Marker } from "../shared/bits";
import { movedTo } from "../shared/moved";
import { against, apart, baseCell, sameOrigin } from "../state/baseline";
import { activeLayer, cellsOf, type Run, rows, runs } from "../state/data";
import { overviewAt } from "../state/detail";
import { tipped } from "../state/followers";
import { type Hover, hover, measure } from "../state/store";

const ROOM = { width: 252, height: 276 };

function Shares({ readout }: { readout: Readout }) {
  return (
    <>
      {LEGEND.map((state) => {
        const count = readout.counts[state];
        return (
          <div key={state} class={`tip-row ${count === 0 ? "none" : ""}`}>
            <i class={`swatch fill-${STATE_NAMES[state]}`} />
            <span>{STATE_TITLES[state]}</span>
            <span class="number">{formatCount(count)}</span>
            <b class="number">{formatShare(count, readout.total)}</b>
          </div>
        );
      })}
      {readout.counts[NO_DATA] > 0 ? (
        <div class="tip-row">
          <i class="swatch" />
          <span>No data</span>
          <span class="number">{formatCount(readout.counts[NO_DATA])}</span>
        </div>
      ) : null}
      {readout.violated > 0 ? (
        <div class="tip-row warn">
          <Icon name="warning" size={14} />
          <span>Moved although held</span>
          <span class="number">{formatCount(readout.violated)}</span>
          <b class="number">{formatShare(readout.violated, readout.total)}</b>
        </div>
      ) : null}
      {readout.nonfinite > 0 ? (
        <div class="tip-row">
          <i class="swatch" />
          <span>Not finite</span>
          <span class="number">{formatCount(readout.nonfinite)}</span>
        </div>
      ) : null}
      <div class="tip-foot">
        <span>mean Δ of moving</span>
        <b>{formatNumber(readout.meanDelta)}</b>
      </div>
      <Weights readout={readout} />
    </>
  );
}

/** The pruned weights, in a run that has any. */
function Weights({ readout }: { readout: Readout }) {
  if (!(readout.pruned > 0)) return null;
  return (
    <div class="tip-weights">
      <span>pruned weights</span>
      <span class="number">{formatCount(readout.pruned)}</span>
      <b class="number">{sparsityText(readout)}</b>
    </div>
  );
}

function Steps({ readout, step }: { readout: Readout | null; step: number }) {
  if (!readout || readout.firstStep === readout.lastStep) {
    return <> · step {formatCount(readout ? readout.firstStep : step)}</>;
  }
  return (
    <>
      {" "}
      · steps {formatCount(readout.firstStep)} to {formatCount(readout.lastStep)}
    </>
  );
}

function RowTip({ at, run }: { at: Hover; run: Run }) {
  const row = rows.value.find((other) => other.id === at.row && (other.kind === "total") === (at.row === ""));
  const overview = overviewAt(run.name, at.step);
  const base = against(run);
  if (!row || !overview) return null;
  const series = sumOf(overview, row.layers);
  const readout = series ? readAt(series, at.step) : null;
  return (
    <>
      <div class="tip-title">{row.kind === "total" ? row.label : row.id}</div>
      <div class="tip-run">
        <Marker color={run.color} shape={run.shape} size={9} /> <bdi>{run.name}</bdi>
        <Steps readout={readout} step={at.step} />
        {series ? ` · ${formatCount(series.channels)} channels` : ""}
      </div>
      {base && readout ? (
        <div class="tip-apart">
          {MEASURE_TITLES[measure.value]} <b>{differenceText(apart(run, base, row.layers, at.step), measure.value)}</b>{" "}
          against <bdi>{base.name}</bdi>
        </div>
      ) : null}
      {readout ? (
        <Shares readout={readout} />
      ) : (
        <p>{series ? "No record at this step." : "This run has no such layer."}</p>
      )}
    </>
  );
}

/** The overview knows the weights of a layer. */
function withWeights(readout: Readout | null, run: Run, layer: string, step: number): Readout | null {
  const series = overviewAt(run.name, step)?.series.get(layer);
  const known = series ? readAt(series, step) : null;
  return readout && known ? { ...readout, pruned: known.pruned, prunable: known.prunable } : readout;
}

function CellTip({ at, run }: { at: Hover; run: Run }) {
  const layer = activeLayer.value;
  const cells = layer ? cellsOf(run.name, layer.id).value : null;
  if (!layer || !cells) return null;
  const record = recordAt(cells, at.step);
  if (at.channel === null) {
    const readout = withWeights(readAt(seriesOf(cells), at.step), run, layer.id, at.step);
    return (
      <>
        <div class="tip-title">All channels</div>
        <div class="tip-run">
          <Marker color={run.color} shape={run.shape} size={9} /> <bdi>{run.name}</bdi>
          <Steps readout={readout} step={at.step} />
        </div>
        {readout ? <Shares readout={readout} /> : <p>No record at this step.</p>}
      </>
    );
  }
  const delta = record < 0 ? Number.NaN : deltaAt(cells, at.channel * cells.records + record);
  const base = against(run);
  const found = base && sameOrigin(run, base) ? baseCell(base, layer.id, at.channel, at.step) : null;
  const byte = record < 0 ? 0 : cells.state[at.channel * cells.records + record];
  return (
    <>
      <div class="tip-title">Channel {at.channel}</div>
      <div class="tip-run">
        <Marker color={run.color} shape={run.shape} size={9} /> <bdi>{run.name}</bdi>
        {record < 0 ? " · no record here" : ` · step ${formatCount(cells.steps[record])}`}
      </div>
      {record < 0 ? null : (
        <>
          <div class="tip-row">
            <i class={`swatch fill-${STATE_NAMES[byte & STATE_BITS].replace(" ", "-")}`} />
            <span>{STATE_TITLES[byte & STATE_BITS]}</span>
          </div>
          {byte & VIOLATED ? (
            <div class="tip-row warn">
              <Icon name="warning" size={14} />
              <span>Moved although held</span>
            </div>
          ) : null}
          {byte & NONFINITE ? <div class="tip-row">Values that aren't finite</div> : null}
          <div class="tip-foot">
            <span>Δ since step {formatCount(cells.pastSteps[record])}</span>
            <b>{formatNumber(delta)}</b>
          </div>
          {found && base ? (
            <div class="tip-foot">
              <span>
                <bdi>{base.name}</bdi>: {STATE_NAMES[found.state]}, Δ {formatNumber(found.delta)}
              </span>
              <b>{found.times(delta)}</b>
            </div>
          ) : null}
        </>
      )}
    </>
  );
}

function Lines({ lines: [title, ...lines] }: { lines: readonly string[] }) {
  return (
    <>
      <div class="tip-title">{title}</div>
      {lines.map((line) => (
        <p key={line}>{line}</p>
      ))}
    </>
  );
}

/** Comes a frame after the tooltip has moved: no frame has both to do. */
function Text() {
  const at = tipped.value;
  const run = at?.run ? runs.value.find((other) => other.name === at.run) : null;
  if (!at) return null;
  return (
    <>
      {at.tip ? <Lines lines={at.tip} /> : null}
      {!run ? null : at.row !== null ? <RowTip at={at} run={run} /> : <CellTip at={at} run={run} />}
    </>
  );
}

export function Tooltip() {
  const at = hover.value;
  if (!at || !(at.run || at.tip)) return null;
  const right = at.x + 18 + ROOM.width < window.innerWidth;
  const top = Math.min(at.y + 16, Math.max(4, window.innerHeight - ROOM.height));
  const left = right ? at.x + 18 : at.x - ROOM.width - 18;
  return (
    <div ref={movedTo(left, top)} class="tooltip" style={{ width: `${ROOM.width}px` }} aria-hidden="true">
      <Text />
    </div>
  );
}
