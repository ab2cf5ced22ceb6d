/** The figures at the pointer. */

import { ABSENT } from "../data/absent";
import { type Cells, cellAt, lagAt, figuresAt as layerFiguresAt } from "../data/cells";
import { formatCount, formatNumber, formatShare, plural } from "../data/format";
import { keptByValue } from "../data/kept";
import { durationText } from "../data/live";
import { differenceText } from "../data/measure";
import type { Figures } from "../data/record";
import { NO_DATA, NONFINITE, STATE_NAMES, STATE_TITLES } from "../data/states";
import { MEASURE_TITLES } from "../data/urlstate";
import { sparsityText } from "../data/violations";
import { useSize } from "../parts/canvas";
import { Icon, Marker, movedTo } from "../parts/widgets";
import { stepsText } from "../parts/words";
import { cellsOf, drawnOf } from "../state/answers";
import { blockAt, figuresAt, wallTimeAt } from "../state/at";
import { baseCell, baselineDiff, baseOf, sameOrigin } from "../state/baseline";
import { tipped } from "../state/followers";
import { insteadText } from "../state/resource";
import { rows } from "../state/rows";
import { activeLayer, layerIn, layers, listed, type Run, runs } from "../state/runs";
import { type Hover, hover, measure } from "../state/store";

/** The height is that of most. */
const ROOM = { width: 252, height: 276 };
const EDGE = 4;

interface LineProps {
  /** "fill-…", the colour of the swatch; a warning has an icon in its place. */
  fill?: string;
  title: string;
  count?: number;
  /** What the count is a share of. */
  total?: number;
  style?: "none" | "warn";
}

const Line = ({ fill = "", title, count, total, style }: LineProps) => (
  <div class={`tip-row ${style ?? ""}`}>
    {style === "warn" ? <Icon name="warning" size={14} /> : <i class={`swatch ${fill}`} />}
    <span>{title}</span>
    {count === undefined ? null : <span class="number">{formatCount(count)}</span>}
    {count === undefined || total === undefined ? null : <b class="number">{formatShare(count, total)}</b>}
  </div>
);

function Shares({ figures }: { figures: Figures }) {
  const { counts, total, violated } = figures;
  return (
    <>
      {listed.value.map((state) => (
        <Line
          key={state}
          fill={`fill-${STATE_NAMES[state]}`}
          title={STATE_TITLES[state]}
          count={counts[state]}
          total={total}
          style={counts[state] === 0 ? "none" : undefined}
        />
      ))}
      {counts[NONFINITE] > 0 ? (
        <Line fill="fill-nonfinite" title={STATE_TITLES[NONFINITE]} count={counts[NONFINITE]} total={total} />
      ) : null}
      {counts[NO_DATA] > 0 ? <Line title="No data" count={counts[NO_DATA]} /> : null}
      {violated > 0 ? <Line title="Violated" count={violated} total={total} style="warn" /> : null}
      <div class="tip-foot">
        <span>mean Δ of moving</span>
        <b>{formatNumber(figures.meanDelta)}</b>
      </div>
      <Weights figures={figures} />
    </>
  );
}

/** The pruned weights, in a run that has any. */
function Weights({ figures }: { figures: Figures }) {
  if (!(figures.pruned > 0)) return null;
  return (
    <div class="tip-weights">
      <span>pruned weights</span>
      <span class="number">{formatCount(figures.pruned)}</span>
      <b class="number">{sparsityText(figures)}</b>
    </div>
  );
}

/** Which steps are drawn where the pointer is, where those are several. */
function drawnText(step: number, run: Run): string {
  const [first, last] = drawnOf(run.name)?.span(step) ?? [step, step];
  return first === last ? "" : `drawn here: steps ${formatCount(first)} to ${formatCount(last)}`;
}

/** When the record was written: at which time, and how long after the first one. */
function clockText(step: number, run: Run): string {
  const time = wallTimeAt(run, step);
  const start = run.wall_time?.[0] ?? Number.NaN;
  if (!(time >= start)) return "";
  const clock = new Date(1000 * time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
  return `${clock}, ${durationText(time - start)} after the first record`;
}

const Head = ({ title, run, text }: { title: string; run: Run; text: string }) => (
  <>
    <div class="tip-title">{title}</div>
    <div class="tip-run">
      <Marker color={run.color} shape={run.shape} size={9} /> <bdi>{run.name}</bdi>
      {text}
    </div>
  </>
);

/** A cell of a row of repeated blocks. */
function cellRow(id: string | null) {
  const layer = layers.value.find((other) => other.id === id);
  return layer && ({ kind: "layer", id: layer.id, label: layer.name, layers: cellLayers(layer.id) } as const);
}

const cellLayers = keptByValue((layer: string) => [layer]);

/** Channels of a row of the tree in a run. */
function RowTip({ at, run }: { at: Hover; run: Run }) {
  const row =
    rows.value.find((other) => other.id === at.row && (other.kind === "total") === (at.row === "")) ?? cellRow(at.row);
  const base = baseOf(run);
  if (!row) return null;
  const figures = figuresAt(run, row.layers, at.step);
  const has = row.layers.some((layer) => layerIn(run, layer));
  const clock = clockText(at.step, run);
  return (
    <>
      <Head
        title={row.kind === "total" ? row.label : row.id}
        run={run}
        text={figures ? ` · ${stepsText(figures)} · ${plural(figures.channels, "channel")}` : ""}
      />
      <p class="tip-run">{drawnText(at.step, run)}</p>
      {clock ? <p class="tip-run">{clock}</p> : null}
      {base && figures ? (
        <div class="tip-apart">
          {MEASURE_TITLES[measure.value]}{" "}
          <b>{differenceText(baselineDiff(run, base, row.layers, at.step), measure.value)}</b> vs <bdi>{base.name}</bdi>
        </div>
      ) : null}
      {figures ? (
        <Shares figures={figures} />
      ) : (
        <p>{has ? insteadText(blockAt(run, at.step), ABSENT.recordHere) : `This run has ${ABSENT.layerIn}.`}</p>
      )}
    </>
  );
}

/** The overview knows the weights of a layer. */
function withWeights(figures: Figures | null, run: Run, layer: string): Figures | null {
  const exact = figures && figuresAt(run, [layer], figures.step);
  return exact && exact.step === figures.step
    ? { ...figures, pruned: exact.pruned, prunable: exact.prunable }
    : figures;
}

/** All channels of the layer. */
function ColumnTip({ step, run, layer, cells }: { step: number; run: Run; layer: string; cells: Cells }) {
  const own = layerFiguresAt(cells, step);
  const exact = own && blockAt(run, own.step);
  const figures = withWeights(own, run, layer);
  return (
    <>
      <Head title="All channels" run={run} text={figures ? ` · ${stepsText(figures)}` : ""} />
      <p class="tip-run">{drawnText(step, run)}</p>
      {figures ? <Shares figures={figures} /> : <p>{ABSENT.recordHere}.</p>}
      {figures && exact && !exact.value ? <p class="tip-run">pruned weights: {insteadText(exact)}</p> : null}
    </>
  );
}

function CellTip({ at, run }: { at: Hover; run: Run }) {
  const layer = activeLayer.value;
  const cells = layer ? cellsOf(run.name, layer.id).value : null;
  if (!layer || !cells) return null;
  const { step, channel } = at;
  if (channel === null) return <ColumnTip step={step} run={run} layer={layer.id} cells={cells} />;
  const cell = cellAt(cells, channel, step);
  const title = `Channel ${channel}`;
  if (!cell) return <Head title={title} run={run} text={` · ${ABSENT.record}`} />;
  const { record, state, delta } = cell;
  const base = baseOf(run);
  const theirs = base && sameOrigin(run, base) ? baseCell(base, layer.id, channel, step) : null;
  return (
    <>
      <Head title={title} run={run} text={` · step ${formatCount(cells.steps[record])}`} />
      <Line fill={`fill-${STATE_NAMES[state].replace(" ", "-")}`} title={STATE_TITLES[state]} />
      {cell.violated ? <Line title="Violated" style="warn" /> : null}
      <div class="tip-foot">
        <span>{lagAt(cells, step) ? `Δ since step ${formatCount(cells.pastSteps[record])}` : "Δ, no past values"}</span>
        <b>{formatNumber(delta)}</b>
      </div>
      {theirs && base ? (
        <div class="tip-foot">
          <span>
            <bdi>{base.name}</bdi>: {STATE_NAMES[theirs.state]}, Δ {formatNumber(theirs.delta)}
          </span>
          <b>{theirs.times(delta)}</b>
        </div>
      ) : null}
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

/** Drawn a frame after the tooltip has moved: no frame does both. */
function Text() {
  const pointed = tipped.value;
  const run = pointed?.run ? runs.value.find((other) => other.name === pointed.run) : null;
  if (!pointed) return null;
  return (
    <>
      {pointed.tip ? <Lines lines={pointed.tip} /> : null}
      {!run ? null : pointed.row !== null ? <RowTip at={pointed} run={run} /> : <CellTip at={pointed} run={run} />}
    </>
  );
}

export function Tooltip() {
  const { ref, size } = useSize<HTMLDivElement>();
  const pointed = hover.value;
  if (!pointed || !(pointed.run || pointed.tip)) return null;
  const right = pointed.x + 18 + ROOM.width < window.innerWidth;
  const lowest = window.innerHeight - Math.max(ROOM.height, size.height + EDGE);
  const top = Math.max(EDGE, Math.min(pointed.y + 16, lowest));
  const left = Math.max(EDGE, right ? pointed.x + 18 : pointed.x - ROOM.width - 18);
  const place = (element: HTMLDivElement | null) => {
    ref.current = element;
    movedTo(left, top)(element);
  };
  return (
    <div ref={place} class="tooltip" style={{ width: `${ROOM.width}px` }} aria-hidden="true">
      <Text />
    </div>
  );
}
