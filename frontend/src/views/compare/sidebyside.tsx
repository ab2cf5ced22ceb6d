/** A | B | difference of the chosen layer: one order of channels, one zoom, one cursor. */

import { useMemo } from "preact/hooks";
import type { Cells } from "../../data/cells";
import { deltaAt, recordAt } from "../../data/cells";
import { aliveIn, differenceCells, isAlive } from "../../data/difference";
import { formatCount, formatNumber } from "../../data/format";
import { timesText } from "../../data/measure";
import { formatOverlap } from "../../data/overlap";
import { STATE_BITS, STATE_NAMES, VIOLATED } from "../../data/states";
import { useSize } from "../../parts/canvas";
import { CellsCanvas } from "../../parts/cellscanvas";
import { CellControls } from "../../parts/controls";
import { columns, DataTable, Marker, RunName, TableButton, Waiting } from "../../parts/widgets";
import { cellsOf } from "../../state/answers";
import { sameOrigin } from "../../state/baseline";
import { cursor } from "../../state/cursor";
import { numberSteps } from "../../state/followers";
import { layerOverlapsAt, pairLayer } from "../../state/overlaps";
import { drawnRows, ordered } from "../../state/rows";
import { layerIn } from "../../state/runs";
import { maskKind, mode, order, tables } from "../../state/store";
import { Apart, classTexts, Legend } from "./differencekey";
import { CellsPlot } from "./sideplot";
import type { Pair, Sides } from "./sides";

const NONE = new Uint32Array(0);

/** "94 of 256 remaining" */
function aliveText(cells: Cells | null, step: number): string {
  const record = cells ? recordAt(cells, step) : -1;
  if (!cells || record < 0) return "no record yet";
  const mask = maskKind.value;
  let alive = 0;
  for (let at = record; at < cells.state.length; at += cells.records) {
    if (isAlive(cells.state[at] & STATE_BITS, mask)) alive++;
  }
  return `${formatCount(alive)} of ${formatCount(cells.channels)} ${mask === "kept" ? "remaining" : "trainable"}`;
}

/** What a run says of a channel: its state, its delta, and both in words; null without a record. */
function channelAt(cells: Cells | null, c: number, step: number) {
  const record = cells && c < cells.channels ? recordAt(cells, step) : -1;
  if (!cells || record < 0) return null;
  const at = c * cells.records + record;
  const state = STATE_NAMES[cells.state[at] & STATE_BITS];
  const delta = deltaAt(cells, at);
  const moved = cells.state[at] & VIOLATED ? ", violated" : "";
  return { state, delta, text: `${state}, Δ ${formatNumber(delta)}${moved}` };
}

function tipOf({ pair, cells }: Sides, shown: readonly number[], c: number, step: number): string[] {
  const texts = shown.map((i) => `${pair[i].name}: ${channelAt(cells[i], c, step)?.text ?? "no record yet"}`);
  return [`Channel ${c}`, `step ${formatCount(step)}`, ...texts];
}

interface SideProps {
  sides: Sides;
  width: number;
  height: number;
}

function Side({ sides, at, ...size }: SideProps & { at: 0 | 1 }) {
  const run = sides.pair[at];
  const cells = sides.cells[at];
  const has = layerIn(run, sides.layer) !== undefined;
  return (
    <div class="side">
      <div class="side-head">
        <Marker color={run.color} shape={run.shape} />
        <b title={run.name}>
          <RunName text={run.short} />
        </b>
        <span class="sub">{cells ? aliveText(cells, numberSteps[1].value) : ""}</span>
      </div>
      {has ? (
        <Waiting found={cellsOf(run.name, sides.layer)} height={size.height} />
      ) : (
        <p class="message">This run has no such layer.</p>
      )}
      {cells && sides.rows[at].length > 0 ? (
        <CellsPlot
          cells={cells}
          rows={sides.rows[at]}
          tip={(c, step) => tipOf(sides, sides.third ? [0, 1] : [at], c, step)}
          {...size}
        >
          <CellsCanvas
            label={`${run.name}, ${sides.layer}: ${formatCount(cells.channels)} channels over steps. At step ${formatCount(cursor.value)}: ${aliveText(cells, cursor.value)}`}
            cells={cells}
            rows={sides.rows[at]}
            mode={mode.value}
            {...size}
          />
        </CellsPlot>
      ) : null}
    </div>
  );
}

function ThirdSide({ sides, ...size }: SideProps) {
  const { layer, pair, rows, third, moves } = sides;
  const overlaps = layerOverlapsAt(pair, numberSteps[1].value);
  const own = overlaps?.layers.get(layer) ?? null;
  const what = moves ? "Δ: B − A" : "Difference";
  return (
    <div class="side">
      <div class="side-head">
        <b>{what}</b>
        <span class="sub" title={overlaps ? `of ${overlaps.header.unit}` : ""}>
          {own && overlaps?.header.comparable
            ? `IoU ${formatOverlap(own.overlap)} · by chance ${formatOverlap(own.chance)}`
            : ""}
        </span>
      </div>
      {third && rows[0].length > 0 ? (
        <CellsPlot cells={third} rows={rows[0]} tip={(c, step) => tipOf(sides, [0, 1], c, step)} {...size}>
          <CellsCanvas
            label={`${what}, ${layer} at step ${formatCount(cursor.value)}: ${moves ? "colours as in the legend" : classTexts(sides, cursor.value).join(", ")}`}
            cells={third}
            rows={rows[0]}
            mode="both"
            differences={moves}
            alive={moves ? undefined : [pair[0].color, pair[1].color]}
            {...size}
          />
        </CellsPlot>
      ) : (
        <Apart sides={sides} own={own} />
      )}
    </div>
  );
}

function SidesTable({ layer, pair, cells, rows }: Sides) {
  const step = cursor.value;
  const [a, b] = pair.map((run) => run.name);
  return (
    <DataTable
      caption={`Channels of ${layer} at step ${formatCount(step)}`}
      columns={columns(["Channel", `State in ${a}`, `State in ${b}`], [`Δ in ${a}`, `Δ in ${b}`, "B against A"])}
      rows={Array.from(rows[cells[0] ? 0 : 1], (c) => {
        const [own, other] = cells.map((one) => channelAt(one, c, step));
        const times = own && other ? timesText(Math.log10(other.delta / own.delta)) : "–";
        const deltas = [own, other].map((one) => formatNumber(one?.delta));
        return [c, own?.state ?? "–", other?.state ?? "–", ...deltas, times];
      })}
    />
  );
}

function useSides(pair: Pair): Sides | null {
  const layer = pairLayer.value?.id;
  const [a, b] = pair.map((run) =>
    layer !== undefined && layerIn(run, layer) ? cellsOf(run.name, layer).value : null,
  );
  const matched = a && b && a.channels === b.channels && sameOrigin(...pair) ? ([a, b] as const) : null;
  const [mask, moves] = [maskKind.value, mode.value === "delta"];
  const third = useMemo(
    () => matched && (moves ? differenceCells(matched[1], matched[0]) : aliveIn(...matched, mask)),
    [a, b, matched === null, moves, mask],
  );
  if (layer === undefined) return null;
  const [own, other] = [a, b].map((one) => (one ? ordered(one, order.value) : NONE));
  const rows = [drawnRows(own), matched ? drawnRows(own) : other] as const;
  return { layer, pair, cells: [a, b], rows, third, moves };
}

function Pictures({ sides }: { sides: Sides }) {
  const { ref, size } = useSize<HTMLDivElement>();
  const sized = { sides, width: Math.floor((size.width - 28) / 3), height: Math.max(160, size.height - 52) };
  return (
    <div class="sides" ref={ref}>
      {size.width > 0 ? (
        <>
          <Side {...sized} at={0} />
          <Side {...sized} at={1} />
          <ThirdSide {...sized} />
        </>
      ) : null}
    </div>
  );
}

export function SidePanel({ pair }: { pair: Pair }) {
  const sides = useSides(pair);
  if (!sides) return <p class="message">No layer to compare. Change the filter for layers.</p>;
  return (
    <>
      <div class="panel-line">
        <h1 title={sides.layer}>
          <bdi>{sides.layer}</bdi>
        </h1>
        <span class="sub">
          {sides.third ? `same channel order in all three; sorted by ${pair[0].name}` : "each in its own order"}
        </span>
        <TableButton panel="sides" what="the channels" />
      </div>
      <div class="controls">
        <CellControls />
      </div>
      {tables.value.has("sides") ? (
        <SidesTable {...sides} />
      ) : (
        <>
          <Pictures sides={sides} />
          <Legend {...sides} />
        </>
      )}
    </>
  );
}
