/** Changes by layer and step: a row a place in forward order, outputs below; a column a run where there is room. */

import { formatCount } from "../../data/format";
import { CHANGE_TITLES, type ChangeAxis, changePlace, changeTicks, formatChange, probedAt } from "../../data/function";
import { blend } from "../../draw/theme";
import { drawChanges } from "../../draw/valuerow";
import { Axis } from "../../parts/axis";
import { RasterCanvas, useRows } from "../../parts/canvas";
import { RunTabs } from "../../parts/controls";
import { Plot } from "../../parts/plot";
import { DataTable, LayerName, movedTo, RunLabel } from "../../parts/widgets";
import { cursor } from "../../state/cursor";
import { numberSteps } from "../../state/followers";
import { openLayer } from "../../state/navigate";
import {
  activeChange,
  activePlace,
  activeProbed,
  layerOfPlace,
  listedPlaces,
  type Probed,
  probed,
  type Spot,
  useChangeAxis,
} from "../../state/probed";
import { hover, place, theme, update } from "../../state/store";
import { FunctionPanel, functionText, placeText, placeTip, valueText } from "./place";

const NAMES = 150;
const VALUE = 70;
/** Narrower than this only the chosen run has a column. */
const NARROWEST = 150;
const MOST = 4;
/** With more runs than these, the list next to the lines is the better choice. */
const TABS = 6;

/** All places, and those that are drawn, from `first` on. */
type Rows = { places: readonly Spot[]; pitch: number; first: number; drawn: readonly Spot[] };

function Column({ entry, rows, axis, width }: { entry: Probed; rows: Rows; axis: ChangeAxis; width: number }) {
  const { series } = entry;
  const { places, pitch, first, drawn } = rows;
  const change = activeChange.value;
  const chosen = places.findIndex((own) => own.id === activePlace.value?.id);
  const read = (pointed: number, y: number) => {
    const record = probedAt(series, pointed);
    const step = record < 0 ? Math.floor(pointed) : series.steps[record];
    const own = places[Math.min(places.length - 1, Math.max(0, Math.floor(y / pitch)))];
    if (!own) return { step };
    const layer = layerOfPlace(own);
    return {
      step,
      row: own.id,
      tip: placeTip(entry, own, step),
      pick: () => update({ place: own.id, run: entry.run.name }),
      open: () => layer !== null && openLayer(layer, entry.run.name),
    };
  };
  return (
    <>
      <Plot class="fn-plot" width={width} style={{ height: `${places.length * pitch}px` }} read={read}>
        <RasterCanvas
          label={`${formatCount(places.length)} places over ${formatCount(series.steps.length)} records. ${functionText(entry, cursor.value)}`}
          width={width}
          height={drawn.length * pitch}
          style={{ top: `${first * pitch}px` }}
          inputs={[series, places, first, drawn.length, pitch, change, axis]}
          steps
          paint={({ area, ratio, scale, pixels }) => {
            const style = { change, axis, pixels };
            drawn.forEach((own, at) => {
              const y = Math.round(at * pitch * ratio);
              const height = Math.round((at + 1) * pitch * ratio) - area.raster.ratio - y;
              drawChanges({ ...area, y, height }, series, series.rows.get(own.id), scale, style);
            });
          }}
        />
        {chosen >= 0 ? (
          <div
            ref={movedTo(0, chosen * pitch - 1)}
            class="outline"
            style={{ height: `${pitch + 1}px`, width: `${width + 4}px` }}
          />
        ) : null}
      </Plot>
      <div class="fn-numbers">
        {drawn.map((own, at) => (
          <span
            key={own.id}
            class={own.id === (hover.value?.row ?? activePlace.value?.id) ? "own" : ""}
            style={{ top: `${(first + at) * pitch}px`, lineHeight: `${pitch - 1}px` }}
          >
            {valueText(entry, own, numberSteps[1].value)}
          </span>
        ))}
      </div>
    </>
  );
}

function Names({ rows: { drawn, first, pitch } }: { rows: Rows }) {
  return (
    <div class="fn-names">
      {drawn.map((own, at) => (
        <button
          key={own.id}
          type="button"
          class={`plain ${own.kind}`}
          aria-pressed={own.id === activePlace.value?.id}
          style={{ top: `${(first + at) * pitch}px`, height: `${pitch}px` }}
          title={`${placeText(own)}: ${formatCount(own.elements)} values per sample`}
          onClick={() => update({ place: own.id })}
        >
          <LayerName id={own.name} />
        </button>
      ))}
    </div>
  );
}

/** What the tints mean; zero and nothing aren't on the scale. */
function Key({ axis }: { axis: ChangeAxis }) {
  const stops = Array.from({ length: 9 }, (_, i) => blend(theme.value.movement, i / 8)).join(", ");
  return (
    <div class="fn-key">
      <i class="swatch fill-quiet" /> 0
      <div class="fn-scale">
        <div class="gradient" style={{ background: `linear-gradient(to right, ${stops})` }} />
        {changeTicks(axis, 4).map(
          (value, i) =>
            value > 0 && (
              <span key={value} class="tick" style={{ left: `${100 * changePlace(axis, value)}%` }}>
                {i === 0 && axis.log ? "≥ " : ""}
                {formatChange(value, activeChange.value)}
              </span>
            ),
        )}
      </div>
      <i class="swatch" /> no value
    </div>
  );
}

function CellsTable() {
  return (
    <DataTable
      caption={`${CHANGE_TITLES[activeChange.value]} change by layer at step ${formatCount(cursor.value)}`}
      columns={["Place", ...probed.value.map(({ run }) => run.name)]}
      texts={["Place"]}
      rows={listedPlaces.value.map((own) => [
        placeText(own),
        ...probed.value.map((entry) => valueText(entry, own, cursor.value)),
      ])}
    />
  );
}

function Picture() {
  const list = probed.value;
  const places = listedPlaces.value;
  // Where none is chosen, the page begins at the input.
  const chosen = places.findIndex(({ id }) => id === place.value);
  const { width: room, pitch, first, last, scroller } = useRows(places.length, chosen, [18, 48]);
  const widthOf = (columns: number) => Math.floor((room - NAMES) / columns) - VALUE;
  const aside = list.length <= MOST && widthOf(list.length) >= NARROWEST;
  const drawn = aside ? list : list.filter((entry) => entry === activeProbed.value);
  const width = widthOf(drawn.length);
  const rows = { places, pitch, first, drawn: places.slice(first, last) };
  const axis = useChangeAxis(null, 5);
  const grid = { gridTemplateColumns: `${NAMES}px repeat(${drawn.length}, ${width}px ${VALUE}px)` };
  return (
    <>
      {aside || list.length > TABS ? (
        <div class="fn-grid fn-heads" style={grid}>
          {drawn.map(({ run }) => (
            <RunLabel key={run.name} run={run} />
          ))}
        </div>
      ) : (
        <RunTabs label="Run of the cells" runs={list.map(({ run }) => run)} chosen={activeProbed.value?.run} />
      )}
      <div class="fn-scroll" role="region" aria-label="Layers over steps" {...scroller}>
        {places.length === 0 ? <p class="message">No layer matches. Change the filter for layers.</p> : null}
        {width > 0 ? (
          <div class="fn-grid" style={grid}>
            <Names rows={rows} />
            {drawn.map((entry) => (
              <Column key={entry.run.name} entry={entry} rows={rows} axis={axis} width={width} />
            ))}
          </div>
        ) : null}
      </div>
      <div class="fn-grid fn-axes" style={grid}>
        {drawn.map(({ run }, i) => (
          <Axis key={run.name} width={width} pill={i === 0} count={Math.max(3, Math.floor(width / 80))} />
        ))}
      </div>
      <Key axis={axis} />
    </>
  );
}

export function FunctionCells() {
  return (
    <FunctionPanel
      name="cells"
      title="By layer and step"
      head={<span class="sub">input at top, outputs below</span>}
      table={() => <CellsTable />}
    >
      <Picture />
    </FunctionPanel>
  );
}
