/** Overlap of the chosen pair by layer and step; of runs without a common origin, the shares that each keeps. */

import { useLayoutEffect, useState } from "preact/hooks";
import { drawValues } from "../../draw/overlap";
import { pixelsOf } from "../../draw/palette";
import { formatCount } from "../../model/format";
import { formatOverlap, keptShares, type Laps, lapAt, setText } from "../../model/overlap";
import { toStep } from "../../model/scale";
import { columnAt } from "../../model/series";
import { Axis } from "../network/head";
import { columns, DataTable, Marker, TableButton, Waiting } from "../shared/bits";
import { RasterCanvas, useSize } from "../shared/canvas";
import { Crosshair } from "../shared/crosshair";
import { startDrag, ZoomBox } from "../shared/drag";
import { openLayer } from "../state/actions";
import { cursor, setStep } from "../state/cursor";
import { type Run, scaleOf } from "../state/data";
import { numberSteps } from "../state/followers";
import { hover, layerFilter, tables, theme, update } from "../state/store";
import { type ComparedLayer, comparedLayers, lapsOf, lapText } from "./overlaps";
import { pairLayer } from "./pair";

type Pair = readonly [Run, Run];

const NAMES = 108;
const NUMBERS = 74;
const AXIS = 24;
const LOWEST = 24;
const HIGHEST = 36;
/** Rows are drawn in blocks, so that scrolling rarely redraws. */
const BLOCK = 12;

const countText = (value = Number.NaN) => (Number.isNaN(value) ? "–" : formatCount(value));

interface Drawn {
  laps: Laps;
  pair: Pair;
  list: ComparedLayer[];
  /** Rows [first, last) of the list are drawn. */
  first: number;
  last: number;
  each: number;
  width: number;
}

function StripsCanvas({ laps, pair: [a, b], list, first, last, each, width }: Drawn) {
  const { comparable, unit, mask } = laps.header;
  const id = pairLayer.value?.id ?? "";
  const lap = lapAt(laps, id, cursor.value);
  const now = lap ? `${id} ${lapText(lap, comparable)}` : `nothing of ${id} is compared`;
  const what = comparable ? "Overlap and its value by chance" : "Share";
  return (
    <RasterCanvas
      label={`${what} of ${setText(unit, mask)}, ${a.name} and ${b.name}, ${list.length} layers over steps. At step ${formatCount(cursor.value)}: ${now}`}
      width={width}
      height={(last - first) * each}
      style={{ top: `${first * each}px` }}
      inputs={[laps, list.length, first, last, each, theme.value]}
      steps
      paint={(raster, _, w, ratio) => {
        const k = laps.starts.length;
        const draw = (values: ArrayLike<number> | null, from: number, to: number) => {
          const [top, bottom] = [Math.round(from * ratio), Math.round(to * ratio)];
          const box = { x: 0, y: top, width: raster.width, height: bottom - top };
          drawValues(raster, box, values, laps, scaleOf(w), pixelsOf(theme.value));
        };
        list.slice(first, last).forEach(({ row }, i) => {
          const [top, bottom] = [i * each + 1, (i + 1) * each - 2];
          if (row < 0 || comparable) draw(row < 0 ? null : laps.overlap.subarray(row * k, (row + 1) * k), top, bottom);
          else {
            draw(keptShares(laps, row, "kept"), top, (top + bottom) / 2);
            draw(keptShares(laps, row, "otherKept"), (top + bottom) / 2 + 1, bottom);
          }
        });
      }}
    />
  );
}

/** The names and numbers of the rows; the chosen one is outlined. */
function Rows({ laps, pair, list, first, last, each, width }: Drawn) {
  return (
    <>
      {list.slice(first, last).map(({ layer, reason }, i) => {
        const on = layer.id === pairLayer.value?.id;
        return (
          <div
            key={layer.id}
            class={`lap ${on ? "on" : ""}`}
            style={{ top: `${(first + i) * each}px`, height: `${each}px` }}
          >
            <button
              type="button"
              class="plain"
              title={`${layer.id}. Double-click opens the layer.`}
              aria-pressed={on}
              onClick={() => update({ layer: layer.id, channel: null, variable: null })}
              onDblClick={() => openLayer(layer.id, pair[0].name)}
            >
              <bdi>{layer.id}</bdi>
            </button>
            <i style={{ width: `${width}px` }} />
            <span class={reason ? "sub" : ""} title={reason}>
              {reason || lapText(lapAt(laps, layer.id, numberSteps[1].value), laps.header.comparable)}
            </span>
          </div>
        );
      })}
    </>
  );
}

/** Step and layer under the pointer; the tip tells what the colour stands for. */
function pointer({ laps, pair: [a, b], list, each, width }: Drawn) {
  const where = (event: MouseEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const at = toStep(scaleOf(width), Math.min(width - 0.01, Math.max(0, event.clientX - box.left)));
    const column = columnAt(laps, at);
    const row = Math.floor((event.clientY - box.top) / each);
    return { step: column < 0 ? Math.floor(at) : laps.starts[column], entry: list[row] };
  };
  const tipOf = ({ layer, reason }: ComparedLayer, step: number) => {
    const lap = lapAt(laps, layer.id, step);
    if (reason || !lap) return [layer.id, reason ? `not compared: ${reason}` : "no record at this step"];
    const { comparable, unit, mask } = laps.header;
    return [
      layer.id,
      `${setText(unit, mask)} of ${formatCount(lap.elements)}, step ${formatCount(lap.lastStep)}`,
      `${a.name}: ${countText(lap.kept)}`,
      `${b.name}: ${countText(lap.otherKept)}`,
      ...(comparable ? [`both: ${countText(lap.both)}`, `overlap / by chance: ${lapText(lap, true)}`] : []),
    ];
  };
  return {
    onPointerMove: (event: PointerEvent) => {
      const { step, entry } = where(event);
      const tip = entry && tipOf(entry, step);
      hover.value = { step, run: null, row: null, channel: null, x: event.clientX, y: event.clientY, tip };
    },
    onPointerLeave: () => {
      hover.value = null;
    },
    onPointerDown: (event: PointerEvent) => startDrag(event, width),
    onClick: (event: MouseEvent) => {
      const { step, entry } = where(event);
      setStep(step);
      if (entry) update({ layer: entry.layer.id, channel: null, variable: null });
    },
    onDblClick: (event: MouseEvent) => {
      const { entry } = where(event);
      if (entry) openLayer(entry.layer.id, a.name);
    },
  };
}

function Strips({ laps, pair, list }: Pick<Drawn, "laps" | "pair" | "list">) {
  const { ref, size } = useSize<HTMLDivElement>();
  const [scroll, setScroll] = useState(0);
  const width = Math.max(0, size.width - NAMES - NUMBERS);
  const each = Math.min(HIGHEST, Math.max(LOWEST, Math.floor((size.height - AXIS) / Math.max(1, list.length))));
  const first = Math.max(0, Math.floor(scroll / each / BLOCK) * BLOCK - BLOCK);
  const last = Math.min(list.length, first + Math.ceil(size.height / each / BLOCK) * BLOCK + 3 * BLOCK);
  const drawn = { laps, pair, list, first, last, each, width };
  const at = list.findIndex(({ layer }) => layer.id === pairLayer.value?.id);
  // The keyboard's layer stays in sight.
  useLayoutEffect(() => {
    const scroller = ref.current;
    if (!scroller || at < 0) return;
    const low = (at + 1) * each + AXIS - scroller.clientHeight;
    scroller.scrollTop = Math.min(at * each, Math.max(low, scroller.scrollTop));
  }, [at, each]);
  return (
    <div
      class="laps"
      ref={ref}
      role="region"
      aria-label="Layers by steps"
      tabIndex={0}
      onScroll={(event) => setScroll(event.currentTarget.scrollTop)}
    >
      {width > 0 ? (
        <div style={{ height: `${list.length * each}px` }} class="lap-rows">
          <Rows {...drawn} />
          <div class="lap-plot" style={{ left: `${NAMES}px`, width: `${width}px` }} {...pointer(drawn)}>
            <StripsCanvas {...drawn} />
            <Crosshair width={width} />
            <ZoomBox width={width} />
          </div>
        </div>
      ) : null}
      <div class="lap-axis" style={{ paddingLeft: `${NAMES}px` }}>
        <Axis width={width} pill count={3} />
      </div>
    </div>
  );
}

function LapsTable({ laps, pair: [a, b], list }: Pick<Drawn, "laps" | "pair" | "list">) {
  const step = cursor.value;
  return (
    <DataTable
      caption={`${setText(laps.header.unit, laps.header.mask)} by layer at step ${formatCount(step)}`}
      columns={columns(
        ["Layer"],
        ["Overlap", "By chance", `In ${a.name}`, `In ${b.name}`, "In both", "Of"],
        ["Not compared"],
      )}
      rows={list.map(({ layer, reason }) => {
        const lap = lapAt(laps, layer.id, step);
        const overlaps = [lap?.overlap, lap?.chance].map((value) => formatOverlap(value ?? null));
        const counts = [lap?.kept, lap?.otherKept, lap?.both, lap?.elements].map(countText);
        return [layer.id, ...overlaps, ...counts, reason];
      })}
    />
  );
}

export function LayersPanel({ pair }: { pair: Pair }) {
  const [a, b] = pair;
  const found = lapsOf(pair);
  const laps = found.value;
  const list = laps ? comparedLayers(pair, laps) : [];
  const comparable = laps?.header.comparable ?? true;
  const asTable = tables.value.has("laps");
  return (
    <div class="laps-part">
      <div class="panel-line">
        <h1>{comparable ? "By layer and step" : "Share left by layer and step"}</h1>
        <span class="sub" aria-hidden="true">
          <Marker color={a.color} shape={a.shape} size={9} /> {comparable ? "∩" : "above,"}{" "}
          <Marker color={b.color} shape={b.shape} size={9} /> {comparable ? "/ by chance" : "below"}
        </span>
        <TableButton panel="laps" what="the layers" />
      </div>
      <Waiting found={found} height={260} />
      {laps && list.length === 0 ? (
        <p class="message">No layer matches '{layerFilter.value.text}'. Change the filter for layers.</p>
      ) : null}
      {laps && list.length > 0 && asTable ? <LapsTable laps={laps} pair={pair} list={list} /> : null}
      {laps && list.length > 0 && !asTable ? <Strips laps={laps} pair={pair} list={list} /> : null}
    </div>
  );
}
