/** Overlap of the chosen pair by layer and step; of runs without a common origin, the shares that each keeps. */

import { ABSENT, DASH } from "../../data/absent";
import { formatCount } from "../../data/format";
import { formatOverlap, setText, shareTitle } from "../../data/overlap";
import type { OverlapColumns } from "../../draw/difference";
import { Axis } from "../../parts/axis";
import { RasterCanvas, useRows } from "../../parts/canvas";
import { Plot, type Target } from "../../parts/plot";
import { DataTable, LayerName, Marker, Status, TableButton, Waiting } from "../../parts/widgets";
import { recordStep } from "../../state/at";
import { cursor } from "../../state/cursor";
import { numberSteps } from "../../state/followers";
import { openLayer } from "../../state/navigate";
import {
  type ComparedLayer,
  comparedLayers,
  layerOverlapsAt,
  overlapColumnsOf,
  overlappedText,
  type Pair,
  pairLayer,
} from "../../state/overlaps";
import { insteadText } from "../../state/resource";
import { layerFilter, tables, update } from "../../state/store";

/** Of the width. */
const NAMES = 0.36;
const NUMBERS = 104;
const AXIS = 24;

const countText = (value = Number.NaN) => (Number.isNaN(value) ? DASH : formatCount(value));

type Compared = { drawn: OverlapColumns; pair: Pair; list: ComparedLayer[] };
/** Rows [first, last) of the list are drawn, each as high as the pitch; `names` and `width` are of names and strips. */
type Drawn = Compared & { first: number; last: number; pitch: number; names: number; width: number };

function StripsCanvas({ drawn, pair, list, first, last, pitch, width }: Drawn) {
  const { comparable, unit, mask } = drawn.header;
  const id = pairLayer.value?.id ?? "";
  const now = `${id} ${overlappedText(layerOverlapsAt(pair, cursor.value), id)}`;
  const what = comparable ? "Overlap and its value by chance" : "Share";
  return (
    <RasterCanvas
      label={`${what} of ${setText(unit, mask)}, ${pair[0].name} and ${pair[1].name}, ${list.length} layers over steps. At step ${formatCount(cursor.value)}: ${now}`}
      width={width}
      height={(last - first) * pitch}
      style={{ top: `${first * pitch}px` }}
      inputs={[drawn, list.length, first, last, pitch]}
      steps
      paint={({ area, ratio, scale, pixels }) => {
        const draw = (row: number, which: "overlap" | "kept" | "other_kept", from: number, to: number) => {
          const [top, bottom] = [Math.round(from * ratio), Math.round(to * ratio)];
          drawn.draw({ ...area, y: top, height: bottom - top }, row, which, scale, pixels);
        };
        list.slice(first, last).forEach(({ row }, i) => {
          const [top, bottom] = [i * pitch + 1, (i + 1) * pitch - 2];
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

const choose = (layer: string) => update({ layer, channel: null, variable: null });

/** The names and numbers of the rows; the chosen one is outlined. */
function Rows({ pair, list, first, last, pitch, names, width }: Drawn) {
  const overlaps = layerOverlapsAt(pair, numberSteps[1].value);
  return (
    <>
      {list.slice(first, last).map(({ layer, reason }, i) => {
        const on = layer.id === pairLayer.value?.id;
        return (
          <div
            key={layer.id}
            class={`lap ${on ? "on" : ""}`}
            style={{ top: `${(first + i) * pitch}px`, height: `${pitch}px` }}
          >
            <button
              type="button"
              class="plain"
              style={{ width: `${names - 6}px` }}
              title={`${layer.id}. Double-click opens the layer.`}
              aria-pressed={on}
              onClick={() => choose(layer.id)}
              onDblClick={() => openLayer(layer.id, pair[0].name)}
            >
              <LayerName id={layer.id} />
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

/** Lines that explain the colour of a layer. */
function tipOf({ drawn, pair: [a, b] }: Compared, { layer, reason }: ComparedLayer, step: number): string[] {
  const { comparable, unit, mask } = drawn.header;
  if (reason) return [layer.id, `not compared: ${reason}`];
  const answer = layerOverlapsAt([a, b], step);
  const own = answer.value?.layers.get(layer.id);
  const title = `${setText(unit, mask)}, step ${formatCount(step)}`;
  if (!own) return [layer.id, title, insteadText(answer, DASH)];
  const kept = [`${a.name}: ${countText(own.kept)}`, `${b.name}: ${countText(own.otherKept)}`];
  const overlap = `overlap ${formatOverlap(own.overlap)}, by chance ${formatOverlap(own.chance)}`;
  const common = comparable ? [`both: ${countText(own.both)}`, overlap] : [];
  return [layer.id, `${title}, of ${formatCount(own.elements)}`, ...kept, ...common];
}

/** The layer at a height, and the newest step at which any of the runs has a record. */
function targetAt(compared: Compared, pointed: number, entry: ComparedLayer | undefined): Target {
  const { pair } = compared;
  const steps = pair.map((run) => recordStep(run, pointed)).filter((step) => step <= pointed);
  const step = Math.max(Math.floor(steps.length > 0 ? 0 : pointed), ...steps);
  if (!entry) return { step };
  return {
    step,
    // Its numbers may still be on their way.
    get tip() {
      return tipOf(compared, entry, step);
    },
    pick: () => choose(entry.layer.id),
    open: () => openLayer(entry.layer.id, pair[0].name),
  };
}

function Strips(compared: Compared) {
  const { list } = compared;
  const chosen = list.findIndex(({ layer }) => layer.id === pairLayer.value?.id);
  const rows = useRows(list.length, chosen, [24, 36], AXIS);
  const { pitch, scroller } = rows;
  const names = Math.round(rows.width * NAMES);
  const width = Math.max(0, rows.width - names - NUMBERS);
  const drawn = { ...compared, ...rows, names, width };
  return (
    <div class="laps" role="region" aria-label="Layers by steps" {...scroller}>
      {width > 0 ? (
        <div style={{ height: `${list.length * pitch}px` }} class="lap-rows">
          <Rows {...drawn} />
          <Plot
            class="lap-plot"
            width={width}
            style={{ left: `${names}px` }}
            read={(step, y) => targetAt(compared, step, list[Math.floor(y / pitch)])}
          >
            <StripsCanvas {...drawn} />
          </Plot>
        </div>
      ) : null}
      <div class="lap-axis" style={{ paddingLeft: `${names}px` }}>
        <Axis width={width} pill count={3} />
      </div>
    </div>
  );
}

function LayersTable({ drawn, pair, list }: Compared) {
  const overlaps = layerOverlapsAt(pair, cursor.value);
  const [a, b] = pair;
  return (
    <DataTable
      caption={`${setText(drawn.header.unit, drawn.header.mask)} by layer at step ${formatCount(cursor.value)}`}
      columns={["Layer", "Overlap", "By chance", `In ${a.name}`, `In ${b.name}`, "In both", "Of", "Not compared"]}
      texts={["Layer", "Not compared"]}
      rows={list.map(({ layer, reason }) => {
        const own = overlaps.value?.layers.get(layer.id);
        const instead = insteadText(overlaps, DASH);
        const ratios = [own?.overlap, own?.chance].map((value) => (own ? formatOverlap(value ?? null) : instead));
        const counts = [own?.kept, own?.otherKept, own?.both, own?.elements].map((value) =>
          own ? countText(value) : instead,
        );
        return [layer.id, ...ratios, ...counts, reason];
      })}
    />
  );
}

export function LayersPanel({ pair }: { pair: Pair }) {
  const [a, b] = pair;
  const answer = overlapColumnsOf(pair);
  const drawn = answer.value;
  const list = drawn ? comparedLayers(pair, drawn) : [];
  const comparable = drawn?.header.comparable ?? true;
  const Shown = tables.value.has("laps") ? LayersTable : Strips;
  return (
    <div class="laps-part">
      <div class="panel-line">
        <h1>
          {drawn && !comparable ? `${shareTitle(drawn.header.unit, drawn.header.mask)} by layer` : "By layer and step"}
        </h1>
        <span class="sub" aria-hidden="true">
          <Marker color={a.color} shape={a.shape} size={9} /> {comparable ? "vs" : "above,"}{" "}
          <Marker color={b.color} shape={b.shape} size={9} /> {comparable ? "/ by chance" : "below"}
        </span>
        <TableButton panel="laps" what="the layers" />
      </div>
      <Waiting answer={answer} height={260} />
      {drawn ? <Status of={[["", layerOverlapsAt(pair, numberSteps[1].value)]]} /> : null}
      {drawn && list.length === 0 ? (
        <p class="message">
          {ABSENT.layer} '{layerFilter.value.text}'. Change the filter for layers.
        </p>
      ) : null}
      {drawn && list.length > 0 ? <Shown drawn={drawn} pair={pair} list={list} /> : null}
    </div>
  );
}
