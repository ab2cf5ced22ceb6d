/** A | B | difference of the chosen layer: one order of channels, one zoom, one cursor. */

import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { drawGrid, paintClasses, paintSigned } from "../draw/difference";
import { pixelsOf } from "../draw/palette";
import type { Cells } from "../model/cells";
import { deltaOf } from "../model/delta";
import { aliveIn, countsAt, DECADES, decadesApart, type Grid, isAlive, movesMore } from "../model/difference";
import { formatCount, formatNumber } from "../model/format";
import type { MaskKind } from "../model/hash";
import { formatOverlap, lapAt } from "../model/overlap";
import { toPixel, toStep } from "../model/scale";
import { lastAtOrBefore } from "../model/series";
import { ORDER_TITLES, orderRows } from "../model/sort";
import { STATE_BITS, STATE_NAMES, VIOLATED } from "../model/states";
import { DataTable, Failure, Marker, RunName, Skeleton, TableButton } from "./bits";
import { RasterCanvas, useSize } from "./canvas";
import { CellsCanvas } from "./cellscanvas";
import { lapsOf, sameOrigin } from "./comparedata";
import { cursor, readStep } from "./cursor";
import { cellSummary, cellsOf, layerIn, type Run, range, scaleOf, threshold } from "./data";
import { Apart, Legend } from "./differencekey";
import { startDrag, ZoomBox } from "./drag";
import { recordAt } from "./heatpanel";
import { CellControls } from "./layer";
import { Axis } from "./nethead";
import { pairLayer } from "./pair";
import { channel, hover, maskKind, mode, order, tables, theme, update } from "./store";

type Pair = readonly [Run, Run];

export interface Sides {
  pair: Pair;
  /** null until they are there, or where the run has no such layer. */
  cells: readonly [Cells | null, Cells | null];
  /** Drawing order of each; the same for both where channels can be matched. */
  rows: readonly [Uint32Array, Uint32Array];
  matched: boolean;
  /** What is alive in which, and how much more B moves where that is shown; null where channels can't be matched. */
  classes: Grid | null;
  moves: Grid | null;
}

const stateAt = (cells: Cells, c: number, record: number): number =>
  record < 0 ? 0 : cells.state[c * cells.records + record] & STATE_BITS;

/** "94 of 256 alive" */
function aliveText(cells: Cells | null, step: number, mask: MaskKind): string {
  const record = cells ? recordAt(cells, step) : -1;
  if (!cells || record < 0) return "no record here";
  let alive = 0;
  for (let c = 0; c < cells.channels; c++) if (isAlive(stateAt(cells, c, record), mask)) alive++;
  return `${formatCount(alive)} of ${formatCount(cells.channels)} ${mask === "kept" ? "alive" : "trainable"}`;
}

/** What the runs say of a channel. */
function tipOf({ pair, cells }: Sides, shown: readonly number[], c: number, step: number): string[] {
  const lines = shown.map((i) => {
    const own = cells[i];
    const record = own ? recordAt(own, step) : -1;
    if (!own || record < 0) return `${pair[i].name}: no record here`;
    const at = c * own.records + record;
    const moved = own.state[at] & VIOLATED ? ", moved although held" : "";
    return `${pair[i].name}: ${STATE_NAMES[own.state[at] & STATE_BITS]}, Δ ${formatNumber(deltaOf(own.delta[at]))}${moved}`;
  });
  return [`Channel ${c}`, `step ${formatCount(step)}`, ...lines];
}

interface PlotProps {
  sides: Sides;
  rows: Uint32Array;
  steps: Float64Array;
  /** The runs that the tooltip tells of. */
  told: readonly number[];
  width: number;
  height: number;
  children: ComponentChildren;
}

/** A heatmap with pointer, crosshair and the line of the channel. */
function Plot({ sides, rows, steps, told, width, height, children }: PlotProps) {
  const x = toPixel(scaleOf(width), readStep.value);
  const own = hover.value?.channel ?? channel.value;
  const row = own === null ? -1 : rows.indexOf(own);
  const where = (event: MouseEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const at = toStep(scaleOf(width), Math.min(width - 0.01, Math.max(0, event.clientX - box.left)));
    const record = lastAtOrBefore(steps, at);
    const place = Math.floor(((event.clientY - box.top) / height) * rows.length);
    return {
      step: record < 0 ? Math.floor(at) : steps[record],
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
          const tip = tipOf(sides, told, at.channel, at.step);
          hover.value = { ...at, run: null, row: null, x: event.clientX, y: event.clientY, tip };
        }}
        onPointerLeave={() => (hover.value = null)}
        onPointerDown={(event) => startDrag(event, width)}
        onClick={(event) => update(where(event))}
      >
        {children}
        {x >= 0 && x <= width ? <div class="crosshair" style={{ left: `${x}px` }} /> : null}
        {row >= 0 ? <div class="row-line" style={{ top: `${((row + 0.5) / rows.length) * height}px` }} /> : null}
        <ZoomBox width={width} />
      </div>
      <Axis width={width} pill count={Math.max(2, Math.floor(width / 70))} />
    </>
  );
}

function Side({ sides, at, width, height }: { sides: Sides; at: 0 | 1; width: number; height: number }) {
  const run = sides.pair[at];
  const cells = sides.cells[at];
  const rows = sides.rows[at];
  const id = pairLayer.value!.id;
  const found = layerIn(run, id) ? cellsOf(run.name, id) : null;
  return (
    <div class="side">
      <div class="side-head">
        <Marker color={run.color} shape={run.shape} />
        <b title={run.name}>
          <RunName text={run.name} />
        </b>
        <span class="sub">{cells ? aliveText(cells, readStep.value, maskKind.value) : ""}</span>
      </div>
      {!found ? <p class="message">This run has no such layer.</p> : null}
      {found?.error && !cells ? <Failure text={found.error} /> : null}
      {found && !cells && !found.error ? <Skeleton height={height} /> : null}
      {cells && rows.length > 0 && width > 0 ? (
        <Plot
          sides={sides}
          rows={rows}
          steps={cells.steps}
          told={sides.matched ? [0, 1] : [at]}
          width={width}
          height={height}
        >
          <CellsCanvas
            label={`${run.name}, ${id}: ${formatCount(cells.channels)} channels over steps. At step ${formatCount(cursor.value)}: ${aliveText(cells, cursor.value, maskKind.value)}`}
            cells={cells}
            rows={rows}
            mode={mode.value}
            width={width}
            height={height}
          />
        </Plot>
      ) : null}
    </div>
  );
}

function ThirdSide({ sides, width, height }: { sides: Sides; width: number; height: number }) {
  const { pair, rows, classes, moves } = sides;
  const id = pairLayer.value!.id;
  const laps = lapsOf(pair).value;
  const lap = laps && lapAt(laps, id, readStep.value);
  const grid = moves ?? classes;
  const colors = [pair[0].color, pair[1].color] as const;
  const counts = classes && countsAt(classes, cursor.value);
  const label =
    `Difference of ${pair[0].name} and ${pair[1].name} in ${id} at step ${formatCount(cursor.value)}: ` +
    (counts
      ? `${counts[1]} channels alive in both, ${counts[2]} only in the first, ${counts[3]} only in the second, ${counts[4]} in neither`
      : "no record in both");
  return (
    <div class="side">
      <div class="side-head">
        <b>{moves ? "Δ of B − Δ of A" : "Difference"}</b>
        <span class="sub" title={laps ? `of ${laps.header.unit}` : ""}>
          {lap && laps?.header.comparable
            ? `IoU ${formatOverlap(lap.overlap)} · by chance ${formatOverlap(lap.chance)}`
            : ""}
        </span>
      </div>
      {grid && width > 0 ? (
        <Plot sides={sides} rows={rows[0]} steps={grid.steps} told={[0, 1]} width={width} height={height}>
          <RasterCanvas
            label={label}
            width={width}
            height={height}
            inputs={[grid, rows[0], theme.value, ...colors, ...range.value]}
            paint={(raster, box, w) => {
              const pixels = pixelsOf(theme.value);
              const paint = moves
                ? paintSigned(theme.value, pixels, raster.ratio)
                : paintClasses(theme.value, pixels, colors, raster.ratio);
              drawGrid(raster, box, grid, rows[0], scaleOf(w), moves !== null, paint);
            }}
          />
        </Plot>
      ) : (
        <Apart sides={sides} lap={lap ?? null} />
      )}
    </div>
  );
}

function SidesTable({ sides: { pair, cells, rows } }: { sides: Sides }) {
  const [a, b] = cells;
  const known = a ?? b;
  if (!known) return null;
  const records = cells.map((own) => (own ? recordAt(own, cursor.value) : -1));
  const code = (i: number, c: number) => {
    const own = cells[i];
    return own && c < own.channels && records[i] >= 0 ? own.delta[c * own.records + records[i]] : null;
  };
  const state = (i: number, c: number) => (code(i, c) === null ? "–" : STATE_NAMES[stateAt(cells[i]!, c, records[i])]);
  const number = (own: number | null) => (own === null ? "–" : formatNumber(deltaOf(own)));
  return (
    <DataTable
      caption={`Channels of ${pairLayer.value!.id} at step ${formatCount(cursor.value)}`}
      columns={[
        { title: "Channel" },
        { title: `State in ${pair[0].name}`, text: true },
        { title: `State in ${pair[1].name}`, text: true },
        { title: `Δ in ${pair[0].name}` },
        { title: `Δ in ${pair[1].name}` },
        { title: `Decades, at most ${DECADES} drawn` },
      ]}
      rows={Array.from(rows[a ? 0 : 1], (c) => {
        const [own, other] = [code(0, c), code(1, c)];
        const apart = own === null || other === null ? Number.NaN : decadesApart(own, other, threshold.value);
        return [c, state(0, c), state(1, c), number(own), number(other), formatNumber(apart)];
      })}
    />
  );
}

function useSides(pair: Pair): Sides | null {
  const layer = pairLayer.value;
  const [a, b] = pair.map((run) => (layer && layerIn(run, layer.id) ? cellsOf(run.name, layer.id).value : null));
  const matched = sameOrigin(pair) && a !== null && b !== null && a.channels === b.channels;
  const rows = useMemo(() => {
    const [own, other] = [a, b].map((one) => (one ? orderRows(cellSummary(one), order.value) : new Uint32Array(0)));
    return [own, matched ? own : other] as const;
  }, [a, b, matched, order.value]);
  const mask = maskKind.value;
  const signed = mode.value === "delta";
  const classes = useMemo(() => (matched ? aliveIn(a, b, mask) : null), [a, b, matched, mask]);
  const moves = useMemo(
    () => (matched && signed ? movesMore(a, b, threshold.value) : null),
    [a, b, matched, signed, threshold.value],
  );
  return layer ? { pair, cells: [a, b], rows, matched, classes, moves } : null;
}

export function SidePanel({ pair }: { pair: Pair }) {
  const { ref, size } = useSize<HTMLDivElement>();
  const sides = useSides(pair);
  if (!sides) return <p class="message">No shown run has a layer.</p>;
  const width = Math.floor((size.width - 2 * 14) / 3);
  const height = Math.max(160, size.height - 52);
  const sorted = sides.matched ? `same channel order in all three; sorted by ${pair[0].name}` : "each in its own order";
  return (
    <>
      <div class="panel-line">
        <h1 title={pairLayer.value!.id}>
          <bdi>{pairLayer.value!.id}</bdi>
        </h1>
        <span class="sub" title={`Order: ${ORDER_TITLES[order.value]}`}>
          {sorted}
        </span>
        <TableButton panel="sides" what="the channels" />
      </div>
      <div class="controls">
        <CellControls />
      </div>
      {tables.value.has("sides") ? (
        <SidesTable sides={sides} />
      ) : (
        <>
          <div class="sides" ref={ref}>
            {size.width > 0 ? (
              <>
                <Side sides={sides} at={0} width={width} height={height} />
                <Side sides={sides} at={1} width={width} height={height} />
                <ThirdSide sides={sides} width={width} height={height} />
              </>
            ) : null}
          </div>
          <Legend {...sides} />
        </>
      )}
    </>
  );
}
