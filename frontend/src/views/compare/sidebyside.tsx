/** A | B | difference of the chosen layer: one order of channels, one zoom, one cursor. */

import { useMemo } from "preact/hooks";
import { ABSENT, DASH } from "../../data/absent";
import { type Cell, type Cells, cellAt, figuresAt } from "../../data/cells";
import { aliveIn, BOTH, differenceCells, NEITHER, ONLY_A, ONLY_B } from "../../data/difference";
import { formatCount, formatNumber } from "../../data/format";
import { timesText } from "../../data/measure";
import { formatOverlap, type Overlapped } from "../../data/overlap";
import { FROZEN, PRUNED, STATE_NAMES } from "../../data/states";
import { bothColor, lineColor } from "../../draw/difference";
import { Axis } from "../../parts/axis";
import { Sized } from "../../parts/canvas";
import { CellsCanvas, CellsPlot } from "../../parts/cellsplot";
import { CellControls } from "../../parts/controls";
import { DataTable, Gradient, Lost, Marker, RunName, Status, TableButton, Waiting } from "../../parts/widgets";
import { cellsOf, layerCells } from "../../state/answers";
import { sameOrigin } from "../../state/baseline";
import { cursor } from "../../state/cursor";
import { numberSteps } from "../../state/followers";
import { layerOverlapsAt, type Pair, pairLayer, shareText } from "../../state/overlaps";
import { insteadText, NOT_LOADED } from "../../state/resource";
import { drawnRows, ordered } from "../../state/rows";
import { layerIn } from "../../state/runs";
import { maskKind, mode, order, tables, theme } from "../../state/store";

/** What is shown side by side of one layer. */
interface Sides {
  layer: string;
  pair: Pair;
  /** Of A and B, null until they are there or where the run has no such layer; then what differs. */
  cells: readonly [Cells | null, Cells | null, Cells | null];
  /** The rows that are drawn of each; the same for all where channels can be matched. */
  rows: readonly [Uint32Array, Uint32Array, Uint32Array];
  /** Whether the third picture shows B's delta vs A's; otherwise it shows where each channel remains. */
  moves: boolean;
}

const NONE = new Uint32Array(0);
const THIRD = 2;

/** What the mask lets through, and what it doesn't. */
const maskWords = () => (maskKind.value === "kept" ? ["remaining", "pruned"] : ["trainable", "held"]);

/** "94 of 256 remaining" */
function aliveText(cells: Cells, step: number): string {
  const figures = figuresAt(cells, step);
  if (!figures) return ABSENT.record;
  const held = figures.counts[PRUNED] + (maskKind.value === "kept" ? 0 : figures.counts[FROZEN]);
  return `${formatCount(cells.channels - held)} of ${formatCount(cells.channels)} ${maskWords()[0]}`;
}

const cellText = (cell: Cell | null): string =>
  cell
    ? `${STATE_NAMES[cell.state]}, Δ ${formatNumber(cell.delta)}${cell.violated ? ", violated" : ""}`
    : ABSENT.record;

interface SideProps {
  sides: Sides;
  width: number;
  height: number;
}

/** The heatmap of a side; the tooltip describes both runs if their channels can be matched. */
function Heat({ sides, side, label, ...size }: SideProps & { side: 0 | 1 | 2; label: string }) {
  const { pair, moves } = sides;
  const [cells, rows, own] = [sides.cells[side], sides.rows[side], side !== THIRD];
  if (!cells || rows.length === 0) return null;
  const tip = (channel: number, step: number) => {
    const shown = sides.cells[THIRD] ? [0, 1] : [side];
    const textOf = (cells: Cells | null) => cellText(cells && cellAt(cells, channel, step));
    const texts = shown.map((i) => `${pair[i].name}: ${textOf(sides.cells[i])}`);
    return [`Channel ${channel}`, `step ${formatCount(step)}`, ...texts];
  };
  return (
    <>
      <CellsPlot cells={cells} rows={rows} tip={tip} {...size}>
        <CellsCanvas
          label={label}
          cells={cells}
          rows={rows}
          mode={own ? mode.value : "both"}
          differences={!own && moves}
          alive={own || moves ? undefined : [pair[0].color, pair[1].color]}
          {...size}
        />
      </CellsPlot>
      <Axis width={size.width} pill count={Math.max(2, Math.floor(size.width / 70))} />
    </>
  );
}

function Side({ side, ...props }: SideProps & { side: 0 | 1 }) {
  const { layer, pair, ...sides } = props.sides;
  const [run, cells] = [pair[side], sides.cells[side]];
  const now = cells && aliveText(cells, cursor.value);
  return (
    <div class="side">
      <div class="side-head">
        <Marker color={run.color} shape={run.shape} />
        <b title={run.name}>
          <RunName run={run} />
        </b>
        <span class="sub">{cells ? aliveText(cells, numberSteps[1].value) : ""}</span>
      </div>
      {layerIn(run, layer) ? (
        <Waiting answer={cellsOf(run.name, layer)} height={props.height} />
      ) : (
        <p class="message">This run has {ABSENT.layerIn}.</p>
      )}
      <Heat
        side={side}
        label={`${run.name}, ${layer}: ${formatCount(cells?.channels ?? 0)} channels over steps. At step ${formatCount(cursor.value)}: ${now}`}
        {...props}
      />
    </div>
  );
}

/** The classes of the difference in words, and how many channels are in each at a step. */
function classesAt({ pair: [a, b], cells: [first, second] }: Sides, step: number): [string, string][] {
  // The last record of a run holds on, as in the heads; the pictures end with it.
  const [own, other] = [first, second].map((side) => side && { ...side, end: Number.POSITIVE_INFINITY });
  const figures = own && other && figuresAt(aliveIn(own, other, maskKind.value, Float64Array.of(step)), step);
  const [alive, gone] = maskWords();
  const texts = [`${alive} in both`, `only ${a.name}`, `only ${b.name}`, `${gone} in both`];
  const count = (kind: number) => (figures && figures.total > 0 ? formatCount(figures.counts[kind]) : "–");
  return [BOTH, ONLY_A, ONLY_B, NEITHER].map((kind, i) => [texts[i], count(kind)]);
}

function ThirdSide(props: SideProps) {
  const { layer, pair, cells, rows, moves } = props.sides;
  const answer = layerOverlapsAt(pair, numberSteps[1].value);
  const overlaps = answer.value;
  const own = overlaps?.layers.get(layer) ?? null;
  const what = moves ? "Δ: B − A" : "Difference";
  const legend = moves
    ? ["colours as in the legend"]
    : classesAt(props.sides, cursor.value).map((texts) => texts.join(" "));
  return (
    <div class="side">
      <div class="side-head">
        <b>{what}</b>
        <span class="sub" title={overlaps ? `of ${overlaps.header.unit}` : ""}>
          {own && overlaps?.header.comparable
            ? `IoU ${formatOverlap(own.overlap)} · by chance ${formatOverlap(own.chance)}`
            : ""}
          {!overlaps && answer.error ? <Lost why={answer.error} what={`IoU ${NOT_LOADED}`} /> : null}
        </span>
      </div>
      {cells[THIRD] && rows[THIRD].length > 0 ? (
        <Heat
          side={THIRD}
          label={`${what}, ${layer} at step ${formatCount(cursor.value)}: ${legend.join(", ")}`}
          {...props}
        />
      ) : (
        <Apart sides={props.sides} own={own} />
      )}
    </div>
  );
}

function Legend(sides: Sides) {
  const { pair, cells, moves } = sides;
  if (!cells[THIRD]) return null;
  if (moves) {
    return (
      <div class="side-legend">
        <span>
          B moves less ÷10 <Gradient stops={theme.value.diverging} /> ×10 more
        </span>
        <span class="sub">other colours: B is in that state, A isn't</span>
      </div>
    );
  }
  const [a, b] = pair.map((run) => run.color);
  const lined = `repeating-linear-gradient(45deg, ${b} 0 4.6px, ${lineColor(theme.value, b)} 4.6px 5.6px)`;
  return (
    <div class="side-legend">
      {classesAt(sides, numberSteps[1].value).map(([text, count], i) => (
        <span key={text}>
          <i class="swatch fill-pruned" style={{ background: [bothColor(theme.value), a, lined][i] }} />
          <bdi>{text}</bdi> <b>{count}</b>
        </span>
      ))}
    </div>
  );
}

/** Shown instead of the difference. */
function Apart({ sides: { pair, cells }, own }: { sides: Sides; own: Overlapped | null }) {
  const [a, b] = pair;
  if (sameOrigin(a, b)) {
    const differ = cells[0] && cells[1] && cells[0].channels !== cells[1].channels;
    return differ ? (
      <p class="message">The layers have different numbers of channels, so these can't be matched.</p>
    ) : null;
  }
  const points = own ? (100 * (own.otherKept - own.kept)) / own.elements : Number.NaN;
  return (
    <div class="apart">
      <p>
        <b>Channels can't be matched one to one.</b>
      </p>
      <p>
        {a.name} and {b.name} aren't known to have started from the same weights, so channel 7 of one is unrelated to
        channel 7 of the other.
      </p>
      <p>
        Runs are comparable when they start from the same weights: set the seed before building the model (
        <code>keras.utils.set_random_seed(0)</code>), load the same weights before recording, or resume from a
        checkpoint or snapshot of one run.
      </p>
      {own ? (
        <p>
          {maskKind.value === "kept" ? "Remaining" : "Trainable"} in this layer: {a.name}{" "}
          <b>{shareText(own.kept, own.elements)}</b>, {b.name} <b>{shareText(own.otherKept, own.elements)}</b>
          {Number.isNaN(points) ? "" : `, ${points < 0 ? "−" : "+"}${Math.abs(points).toFixed(1)} pp`}.
        </p>
      ) : null}
    </div>
  );
}

function SidesTable({ layer, pair, cells, rows }: Sides) {
  const step = cursor.value;
  const [a, b] = pair.map((run) => run.name);
  const states = [`State in ${a}`, `State in ${b}`];
  const answers = pair.map((run) => (layerIn(run, layer) ? cellsOf(run.name, layer) : null));
  return (
    <>
      <Status of={pair.map((run, i) => [run.name, answers[i]])} />
      <DataTable
        caption={`Channels of ${layer} at step ${formatCount(step)}`}
        columns={["Channel", ...states, `Δ in ${a}`, `Δ in ${b}`, "B vs A"]}
        texts={["Channel", ...states]}
        rows={Array.from(rows[cells[0] ? 0 : 1], (c) => {
          const [own, other] = [cells[0], cells[1]].map((side) => side && cellAt(side, c, step));
          const lacking = answers.find((answer) => answer && !answer.value) ?? null;
          const times = own && other ? timesText(Math.log10(other.delta / own.delta)) : insteadText(lacking, DASH);
          const textsOf = (text: (cell: Cell) => string) =>
            [own, other].map((cell, i) => (cell ? text(cell) : insteadText(answers[i], DASH)));
          return [
            c,
            ...textsOf(({ state }) => STATE_NAMES[state]),
            ...textsOf(({ delta }) => formatNumber(delta)),
            times,
          ];
        })}
      />
    </>
  );
}

function useSides(pair: Pair): Sides | null {
  const layer = pairLayer.value?.id;
  const [a, b] = pair.map((run) => (layer === undefined ? null : layerCells(run, layer)));
  const matched = a && b && a.channels === b.channels && sameOrigin(...pair) ? ([a, b] as const) : null;
  const [mask, moves] = [maskKind.value, mode.value === "delta"];
  const third = useMemo(
    () => matched && (moves ? differenceCells(matched[1], matched[0]) : aliveIn(...matched, mask)),
    [a, b, matched === null, moves, mask],
  );
  if (layer === undefined) return null;
  const [own, other] = [a, b].map((side) => (side ? ordered(side, order.value) : NONE));
  const drawn = drawnRows(own);
  return { layer, pair, cells: [a, b, third], rows: [drawn, matched ? drawn : other, drawn], moves };
}

function Pictures(sides: Sides) {
  return (
    <>
      <Sized class="sides">
        {(size) => {
          const sized = { sides, width: Math.floor((size.width - 28) / 3), height: Math.max(160, size.height - 66) };
          return (
            <>
              <Side {...sized} side={0} />
              <Side {...sized} side={1} />
              <ThirdSide {...sized} />
            </>
          );
        }}
      </Sized>
      <Legend {...sides} />
    </>
  );
}

export function SidePanel({ pair }: { pair: Pair }) {
  const sides = useSides(pair);
  const Shown = tables.value.has("sides") ? SidesTable : Pictures;
  if (!sides) return <p class="message">{ABSENT.layer}. Change the filter for layers.</p>;
  return (
    <>
      <div class="panel-line">
        <h1 title={sides.layer}>
          <bdi>{sides.layer}</bdi>
        </h1>
        <span class="sub">
          {sides.cells[THIRD] ? `same channel order in all three; sorted by ${pair[0].name}` : "each in its own order"}
        </span>
        <TableButton panel="sides" what="the channels" />
      </div>
      <div class="controls">
        <CellControls />
      </div>
      <Shown {...sides} />
    </>
  );
}
