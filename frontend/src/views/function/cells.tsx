/** Changes by layer and step: a row a place in forward order, outputs below; a column a run where there is room. */

import { useLayoutEffect, useState } from "preact/hooks";
import { formatCount } from "../../data/format";
import { CHANGE_TITLES, type ChangeAxis, changePlace, changeTicks, formatChange, probedAt } from "../../data/function";
import { movementColor, pixelsOf } from "../../draw/theme";
import { drawChanges } from "../../draw/valuerow";
import { Axis } from "../../parts/axis";
import { RasterCanvas, useSize } from "../../parts/canvas";
import { RunTab } from "../../parts/controls";
import { movedTo } from "../../parts/moved";
import { DataTable, RunLabel, RunName } from "../../parts/widgets";
import { cursor } from "../../state/cursor";
import { numberSteps } from "../../state/followers";
import {
  activeChange,
  activePlace,
  activeProbed,
  listedPlaces,
  type Probed,
  probed,
  type Spot,
  useChangeAxis,
} from "../../state/probed";
import { scaleOf } from "../../state/runs";
import { hover, place, theme, update } from "../../state/store";
import { FunctionPanel } from "./panel";
import { StepPlot } from "./stepplot";
import { functionText, placeText, valueText } from "./tip";

const NAMES = 150;
const VALUE = 70;
/** Narrower than this only the chosen run has a column. */
const NARROWEST = 150;
const MOST = 4;
/** Of more runs than these the list beside the lines is the better choice. */
const TABS = 6;
const BLOCK = 10;

interface Rows {
  places: readonly Spot[];
  pitch: number;
  first: number;
  /** Those that are drawn, from `first` on. */
  drawn: readonly Spot[];
}

/** Rows that fill the panel where they are few; of many those in sight and some around them. */
function rowsOf(places: readonly Spot[], scroll: number, height: number): Rows {
  const pitch = Math.min(48, Math.max(18, Math.floor(height / Math.max(1, places.length))));
  const first = Math.max(0, (Math.floor(scroll / pitch / BLOCK) - 1) * BLOCK);
  return { places, pitch, first, drawn: places.slice(first, first + Math.ceil(height / pitch) + 3 * BLOCK) };
}

function Column({ entry, rows, axis, width }: { entry: Probed; rows: Rows; axis: ChangeAxis; width: number }) {
  const { series } = entry;
  const { places, pitch, first, drawn } = rows;
  const change = activeChange.value;
  const chosen = places.findIndex((own) => own.id === activePlace.value?.id);
  const read = (step: number, y: number) => {
    const record = probedAt(series, step);
    const own = places[Math.min(places.length - 1, Math.max(0, Math.floor(y / pitch)))];
    return { step: record < 0 ? Math.floor(step) : series.steps[record], own };
  };
  return (
    <>
      <StepPlot width={width} height={places.length * pitch} entry={entry} read={read}>
        <RasterCanvas
          label={`${formatCount(places.length)} places over ${formatCount(series.steps.length)} records. ${functionText(entry, cursor.value)}`}
          width={width}
          height={drawn.length * pitch}
          style={{ top: `${first * pitch}px` }}
          inputs={[series, places, first, drawn.length, pitch, change, axis, theme.value]}
          steps
          paint={(raster, box, w, ratio) => {
            const style = { change, axis, pixels: pixelsOf(theme.value) };
            drawn.forEach((own, at) => {
              const y = Math.round(at * pitch * ratio);
              const height = Math.round((at + 1) * pitch * ratio) - raster.ratio - y;
              drawChanges(raster, { ...box, y, height }, series, series.rows.get(own.id), scaleOf(w), style);
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
      </StepPlot>
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
          title={`${placeText(own)}: ${formatCount(own.elements)} numbers a sample`}
          onClick={() => update({ place: own.id })}
        >
          <RunName text={own.name} />
        </button>
      ))}
    </div>
  );
}

/** What the tints mean; zero and nothing aren't on the scale. */
function Key({ axis }: { axis: ChangeAxis }) {
  const stops = Array.from({ length: 9 }, (_, i) => movementColor(theme.value, i / 8)).join(", ");
  return (
    <div class="fn-key">
      <i class="swatch fill-settled" /> 0
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
      columns={[{ title: "Place", text: true }, ...probed.value.map(({ run }) => ({ title: run.name }))]}
      rows={listedPlaces.value.map((own) => [
        placeText(own),
        ...probed.value.map((entry) => valueText(entry, own, cursor.value)),
      ])}
    />
  );
}

/** The chosen row stays in sight; the page begins at the input. */
function useInSight(scroller: HTMLElement | null, rows: Rows): void {
  useLayoutEffect(() => {
    const at = rows.places.findIndex((own) => own.id === place.value) * rows.pitch;
    if (!scroller || at < 0) return;
    scroller.scrollTop = Math.min(at, Math.max(scroller.scrollTop, at + rows.pitch - scroller.clientHeight));
  }, [place.value, rows.pitch, scroller]);
}

function Picture() {
  const { ref, size } = useSize<HTMLDivElement>();
  const [scroll, setScroll] = useState(0);
  const list = probed.value;
  const widthOf = (columns: number) => Math.floor((size.width - NAMES) / columns) - VALUE;
  const aside = list.length <= MOST && widthOf(list.length) >= NARROWEST;
  const drawn = aside ? list : list.filter((entry) => entry === activeProbed.value);
  const width = widthOf(drawn.length);
  const rows = rowsOf(listedPlaces.value, scroll, size.height);
  useInSight(ref.current, rows);
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
        <div class="joined run-tabs" role="group" aria-label="Run of the cells">
          {list.map((entry) => (
            <RunTab key={entry.run.name} run={entry.run} on={entry === activeProbed.value} />
          ))}
        </div>
      )}
      <div
        class="fn-scroll"
        ref={ref}
        role="region"
        aria-label="Layers over steps"
        tabIndex={0}
        onScroll={(event) => setScroll(event.currentTarget.scrollTop)}
      >
        {rows.places.length === 0 ? <p class="message">No layer matches. Change the filter for layers.</p> : null}
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
