/** One run's column of strips, with its outline and pointer. */

import { useRef } from "preact/hooks";
import { pixelsOf } from "../../draw/palette";
import { carryRows, fillBox, type Raster } from "../../draw/raster";
import { drawStrip } from "../../draw/strip";
import { drawStripDifference } from "../../draw/versus";
import { formatCount } from "../../model/format";
import { type Overview, sumOf } from "../../model/overview";
import { type Scale, toStep } from "../../model/scale";
import { columnAt, readAt, violations } from "../../model/series";
import { Failure } from "../shared/bits";
import { RasterCanvas } from "../shared/canvas";
import { startDrag } from "../shared/drag";
import { sharesText } from "../shared/words";
import { openLayer } from "../state/actions";
import { against, apartText } from "../state/baseline";
import { setStep } from "../state/cursor";
import { overviewOf, type Run, range, scaleOf } from "../state/data";
import { finestOf, overviewAt } from "../state/detail";
import { spokenStep } from "../state/followers";
import { inSight } from "../state/sight";
import { focusRow, hover, measure, runName, theme, update } from "../state/store";
import { type Layout, type Place, placeAt, type Window } from "./geometry";

interface Props {
  run: Run;
  layout: Layout;
  window: Window;
  width: number;
}

interface Drawn {
  /** Of all steps; in a part of them nothing may be violated. */
  whole: Overview;
  overview: Overview;
  /** What it is drawn against. */
  base: Overview | null;
}

function paint(raster: Raster, place: Place, drawn: Drawn, window: Window, scale: Scale, ratio: number): void {
  const { overview, base } = drawn;
  const pixels = pixelsOf(theme.value);
  const top = Math.round((place.stripTop - window.top) * ratio);
  const bottom = Math.round((place.stripTop + place.stripHeight - window.top) * ratio);
  const box = {
    x: 0,
    y: Math.max(0, top),
    width: raster.width,
    height: Math.min(bottom, raster.height) - Math.max(0, top),
  };
  if (box.height <= 0) return;
  const series = sumOf(overview, place.row.layers);
  if (base) drawStripDifference(raster, box, series, sumOf(base, place.row.layers), measure.value, scale, pixels);
  else drawStrip(raster, box, series, scale, overview.threshold, pixels);
  const all = sumOf(drawn.whole, place.row.layers);
  if (!all || !violations(all)) return;
  const line = raster.ratio;
  fillBox(raster, { ...box, height: line }, pixels.violated);
  fillBox(raster, { ...box, y: box.y + box.height - line, height: line }, pixels.violated);
  fillBox(raster, { ...box, width: line }, pixels.violated);
  fillBox(raster, { ...box, x: raster.width - line, width: line }, pixels.violated);
}

/** A picture that scrolling goes on with. */
interface Last {
  inputs: readonly unknown[];
  window: Window;
  raster: Raster;
}

/** Keeps the pixels that a picture shares with the last one, and gives the rows that are still to be drawn. */
function carry(raster: Raster, last: Last | null, next: Omit<Last, "raster">, ratio: number): readonly Place[] {
  const { window, inputs } = next;
  const shift = last ? (window.top - last.window.top) * ratio : 0;
  const same = last?.raster.width === raster.width && inputs.every((input, i) => input === last.inputs[i]);
  if (!last || !same || !Number.isInteger(shift)) return window.places;
  carryRows(raster, last.raster, shift);
  const { top, bottom } = last.window;
  return window.places.filter((place) => place.stripTop < top || place.stripTop + place.stripHeight > bottom);
}

function Strips({ run, layout, window, width }: Props) {
  const last = useRef<Last | null>(null);
  const { value: whole, error } = overviewOf(run.name);
  const overview = finestOf(run.name);
  if (!whole || !overview) return error ? <Failure text={error} /> : null;
  const base = against(run);
  const drawn = { whole, overview, base: base && finestOf(base.name) };
  const read = overviewAt(run.name, spokenStep.value);
  const total = read && sumOf(read, read.layers);
  const values = sharesText(total ? readAt(total, spokenStep.value) : null);
  const label = `${run.name} at step ${formatCount(spokenStep.value)}: ${base ? `${apartText(run, base)}. ` : ""}${values}`;
  if (base && !drawn.base) return null;
  const inputs = [overview, drawn.base, base && measure.value, layout, theme.value];
  return (
    <RasterCanvas
      class="strips"
      label={label}
      width={width}
      height={window.bottom - window.top}
      style={{ top: `${window.top}px` }}
      inputs={[window, ...inputs]}
      steps
      paint={(raster, _, w, ratio) => {
        const next = { inputs: [...inputs, range.value], window };
        for (const place of carry(raster, last.current, next, ratio)) {
          paint(raster, place, drawn, window, scaleOf(w), ratio);
        }
        last.current = { ...next, raster };
      }}
    />
  );
}

/** Around the row that the pointer or the keyboard is on. */
function Outline({ run, layout, width }: Props) {
  const hovered = hover.value?.run === run.name ? hover.value.row : null;
  const chosen = (runName.value === run.name || hovered !== null) && (hovered ?? focusRow.value);
  const place =
    chosen === false || chosen === null
      ? null
      : layout.places.find((p) => p.row.id === chosen && (p.row.kind === "total") === (chosen === ""));
  if (!place) return null;
  const transform = `translateY(${place.stripTop - 2}px)`;
  return <div class="outline" style={{ transform, height: `${place.stripHeight + 4}px`, width: `${width + 4}px` }} />;
}

/** The step of the run's record that is in force at a place of the axis; a whole step where there is none. */
function snap(run: Run, step: number): number {
  const overview = finestOf(run.name);
  const column = overview ? columnAt(overview, step) : -1;
  return overview && column >= 0 ? overview.starts[column] : Math.floor(step);
}

export function RunColumn(props: Props) {
  const { run, layout, width } = props;
  const where = (event: MouseEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const x = Math.min(width - 0.01, Math.max(0, event.clientX - box.left));
    return { step: snap(run, toStep(scaleOf(width), x)), place: placeAt(layout, event.clientY - box.top) };
  };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the keys of the whole page do the same
    // biome-ignore lint/a11y/noStaticElementInteractions: the keys of the whole page do the same
    <div
      class="run-column"
      onPointerMove={(event) => {
        const { step, place } = where(event);
        hover.value = place
          ? { step, run: run.name, row: place.row.id, channel: null, x: event.clientX, y: event.clientY }
          : null;
      }}
      onPointerLeave={() => (hover.value = null)}
      onPointerDown={(event) => startDrag(event, width)}
      onClick={(event) => {
        if ((event.target as Element).closest("button")) return;
        const { step, place } = where(event);
        setStep(step);
        if (place && place.row.kind !== "total") {
          focusRow.value = place.row.id;
          update({ run: run.name });
        }
      }}
      onDblClick={(event) => {
        const { place } = where(event);
        if (place?.row.kind === "layer") openLayer(place.row.id, run.name);
      }}
    >
      {inSight(run.name) ? (
        <>
          <Strips {...props} />
          <Outline {...props} />
        </>
      ) : null}
    </div>
  );
}
