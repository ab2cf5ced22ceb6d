/** Overlap of the chosen pair by layer and step; of runs without a common origin, the shares that each keeps. */

import { useLayoutEffect, useState } from "preact/hooks";
import { formatCount } from "../../data/format";
import { formatOverlap, setText } from "../../data/overlap";
import { toStep } from "../../data/scale";
import type { OverlapColumns } from "../../draw/overlap";
import { pixelsOf } from "../../draw/theme";
import { Axis } from "../../parts/axis";
import { RasterCanvas, useSize } from "../../parts/canvas";
import { Crosshair } from "../../parts/crosshair";
import { startDrag, ZoomBox } from "../../parts/drag";
import { columns, DataTable, Marker, TableButton, Waiting } from "../../parts/widgets";
import { recordStep } from "../../state/at";
import { cursor, setStep } from "../../state/cursor";
import { numberSteps } from "../../state/followers";
import { openLayer } from "../../state/navigate";
import {
  type ComparedLayer,
  comparedLayers,
  layerOverlapsAt,
  overlapColumnsOf,
  overlappedText,
  pairLayer,
} from "../../state/overlaps";
import { type Run, scaleOf } from "../../state/runs";
import { hover, layerFilter, tables, theme, update } from "../../state/store";

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
  drawn: OverlapColumns;
  pair: Pair;
  list: ComparedLayer[];
  /** Rows [first, last) of the list are drawn. */
  first: number;
  last: number;
  each: number;
  width: number;
}

function StripsCanvas({ drawn, pair, list, first, last, each, width }: Drawn) {
  const { comparable, unit, mask } = drawn.header;
  const id = pairLayer.value?.id ?? "";
  const now = `${id} ${overlappedText(layerOverlapsAt(pair, cursor.value), id)}`;
  const what = comparable ? "Overlap and its value by chance" : "Share";
  return (
    <RasterCanvas
      label={`${what} of ${setText(unit, mask)}, ${pair[0].name} and ${pair[1].name}, ${list.length} layers over steps. At step ${formatCount(cursor.value)}: ${now}`}
      width={width}
      height={(last - first) * each}
      style={{ top: `${first * each}px` }}
      inputs={[drawn, list.length, first, last, each, theme.value]}
      steps
      paint={(raster, _, w, ratio) => {
        const draw = (row: number, which: "overlap" | "kept" | "other_kept", from: number, to: number) => {
          const [top, bottom] = [Math.round(from * ratio), Math.round(to * ratio)];
          const box = { x: 0, y: top, width: raster.width, height: bottom - top };
          drawn.draw(raster, box, row, which, scaleOf(w), pixelsOf(theme.value));
        };
        list.slice(first, last).forEach(({ row }, i) => {
          const [top, bottom] = [i * each + 1, (i + 1) * each - 2];
          if (row < 0 || comparable) draw(row, "overlap", top, bottom);
          else {
            draw(row, "kept", top, (top + bottom) / 2);
            draw(row, "other_kept", (top + bottom) / 2 + 1, bottom);
          }
        });
      }}
    />
  );
}

/** The names and numbers of the rows; the chosen one is outlined. */
function Rows({ pair, list, first, last, each, width }: Drawn) {
  const overlaps = layerOverlapsAt(pair, numberSteps[1].value);
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
              {reason || overlappedText(overlaps, layer.id)}
            </span>
          </div>
        );
      })}
    </>
  );
}

/** Step and layer under the pointer; the tip tells what the colour stands for. */
function pointer({ drawn, pair, list, each, width }: Drawn) {
  const [a, b] = pair;
  const { comparable, unit, mask } = drawn.header;
  const where = (event: MouseEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const pointed = toStep(scaleOf(width), Math.min(width - 0.01, Math.max(0, event.clientX - box.left)));
    const steps = pair.map((run) => recordStep(run, pointed)).filter((step) => step <= pointed);
    const row = Math.floor((event.clientY - box.top) / each);
    return { step: Math.max(Math.floor(steps.length > 0 ? 0 : pointed), ...steps), entry: list[row] };
  };
  const tipOf = ({ layer, reason }: ComparedLayer, step: number) => {
    if (reason) return [layer.id, `not compared: ${reason}`];
    const own = layerOverlapsAt(pair, step)?.layers.get(layer.id);
    const title = `${setText(unit, mask)}, step ${formatCount(step)}`;
    if (!own) return [layer.id, title, "…"];
    return [
      layer.id,
      `${title}, of ${formatCount(own.elements)}`,
      `${a.name}: ${countText(own.kept)}`,
      `${b.name}: ${countText(own.otherKept)}`,
      ...(comparable
        ? [
            `both: ${countText(own.both)}`,
            `overlap ${formatOverlap(own.overlap)}, by chance ${formatOverlap(own.chance)}`,
          ]
        : []),
    ];
  };
  return {
    onPointerMove: (event: PointerEvent) => {
      const { step, entry } = where(event);
      hover.value = {
        step,
        run: null,
        row: null,
        channel: null,
        x: event.clientX,
        y: event.clientY,
        // Its numbers may still be on their way.
        get tip() {
          return entry && tipOf(entry, step);
        },
      };
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

function Strips({ drawn: columns, pair, list }: Pick<Drawn, "drawn" | "pair" | "list">) {
  const { ref, size } = useSize<HTMLDivElement>();
  const [scroll, setScroll] = useState(0);
  const width = Math.max(0, size.width - NAMES - NUMBERS);
  const each = Math.min(HIGHEST, Math.max(LOWEST, Math.floor((size.height - AXIS) / Math.max(1, list.length))));
  const first = Math.max(0, Math.floor(scroll / each / BLOCK) * BLOCK - BLOCK);
  const last = Math.min(list.length, first + Math.ceil(size.height / each / BLOCK) * BLOCK + 3 * BLOCK);
  const drawn = { drawn: columns, pair, list, first, last, each, width };
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

function LayersTable({ drawn, pair, list }: Pick<Drawn, "drawn" | "pair" | "list">) {
  const overlaps = layerOverlapsAt(pair, cursor.value);
  const [a, b] = pair;
  return (
    <DataTable
      caption={`${setText(drawn.header.unit, drawn.header.mask)} by layer at step ${formatCount(cursor.value)}`}
      columns={columns(
        ["Layer"],
        ["Overlap", "By chance", `In ${a.name}`, `In ${b.name}`, "In both", "Of"],
        ["Not compared"],
      )}
      rows={list.map(({ layer, reason }) => {
        const own = overlaps?.layers.get(layer.id);
        const ratios = [own?.overlap, own?.chance].map((value) => formatOverlap(value ?? null));
        const counts = [own?.kept, own?.otherKept, own?.both, own?.elements].map(countText);
        return [layer.id, ...ratios, ...counts, reason];
      })}
    />
  );
}

export function LayersPanel({ pair }: { pair: Pair }) {
  const [a, b] = pair;
  const found = overlapColumnsOf(pair);
  const drawn = found.value;
  const list = drawn ? comparedLayers(pair, drawn) : [];
  const comparable = drawn?.header.comparable ?? true;
  const asTable = tables.value.has("laps");
  return (
    <div class="laps-part">
      <div class="panel-line">
        <h1>{comparable ? "By layer and step" : "Weights remaining, by layer and step"}</h1>
        <span class="sub" aria-hidden="true">
          <Marker color={a.color} shape={a.shape} size={9} /> {comparable ? "vs" : "above,"}{" "}
          <Marker color={b.color} shape={b.shape} size={9} /> {comparable ? "/ by chance" : "below"}
        </span>
        <TableButton panel="laps" what="the layers" />
      </div>
      <Waiting found={found} height={260} />
      {drawn && list.length === 0 ? (
        <p class="message">No layer matches '{layerFilter.value.text}'. Change the filter for layers.</p>
      ) : null}
      {drawn && list.length > 0 && asTable ? <LayersTable drawn={drawn} pair={pair} list={list} /> : null}
      {drawn && list.length > 0 && !asTable ? <Strips drawn={drawn} pair={pair} list={list} /> : null}
    </div>
  );
}
