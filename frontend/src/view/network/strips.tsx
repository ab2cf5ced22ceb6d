/** The strips of all columns in sight, as one picture: a canvas for each run would be a layer that every frame composes. */

import { useRef } from "preact/hooks";
import { pixelsOf } from "../../draw/palette";
import { carryColumns, fillBox, type Raster } from "../../draw/raster";
import { drawStrip } from "../../draw/strip";
import { drawStripDifference } from "../../draw/versus";
import { plural } from "../../model/format";
import { type Overview, sumOf } from "../../model/overview";
import { violations } from "../../model/series";
import { RasterCanvas } from "../shared/canvas";
import type { RowProps } from "../shared/crosshair";
import { against } from "../state/baseline";
import { overviewOf, type Run, range, scaleOf, shownRuns } from "../state/data";
import { finestOf } from "../state/detail";
import { sight } from "../state/sight";
import { measure, theme } from "../state/store";
import type { Layout, Place, Window } from "./geometry";

interface Drawn {
  /** Of all steps; in a part of them nothing may be violated. */
  whole: Overview;
  overview: Overview;
  /** What it is drawn against. */
  base: Overview | null;
}

/** What the strips of a run are drawn from, as soon as all of it is there. */
export function stripsOf(run: Run): Drawn | null {
  const { value: whole } = overviewOf(run.name);
  const overview = finestOf(run.name);
  const other = against(run);
  const base = other && finestOf(other.name);
  return whole && overview && (base || !other) ? { whole, overview, base } : null;
}

/** The place of a run's strips in the picture, in its pixels. */
interface Column {
  x: number;
  width: number;
  drawn: Drawn;
  /** What it depends on. */
  inputs: readonly unknown[];
}

/** A picture that scrolling goes on with. */
interface Picture {
  raster: Raster;
  ratio: number;
  window: Window;
  /** By run. */
  columns: Map<string, Column>;
}

function paintRow({ raster, ratio, window }: Picture, { x, width, drawn }: Column, place: Place): void {
  const { overview, base } = drawn;
  const pixels = pixelsOf(theme.value);
  const y = Math.max(0, Math.round((place.stripTop - window.top) * ratio));
  const bottom = Math.min(Math.round((place.stripTop + place.stripHeight - window.top) * ratio), raster.height);
  const box = { x, y, width, height: bottom - y };
  if (box.height <= 0) return;
  const [series, scale] = [sumOf(overview, place.row.layers), scaleOf(width)];
  if (base) drawStripDifference(raster, box, series, sumOf(base, place.row.layers), measure.value, scale, pixels);
  else drawStrip(raster, box, series, scale, overview.threshold, pixels);
  const all = sumOf(drawn.whole, place.row.layers);
  if (!all || !violations(all)) return;
  const line = raster.ratio;
  fillBox(raster, { ...box, height: line }, pixels.violated);
  fillBox(raster, { ...box, y: bottom - line, height: line }, pixels.violated);
  fillBox(raster, { ...box, width: line }, pixels.violated);
  fillBox(raster, { ...box, x: x + width - line, width: line }, pixels.violated);
}

/** The rows of a window that an earlier one doesn't show whole. */
const fresh = (window: Window, { top, bottom }: Window): readonly Place[] =>
  window.places.filter((place) => place.stripTop < top || place.stripTop + place.stripHeight > bottom);

/** Draws column after column; what the last picture has of one is carried. */
function* paintAll(picture: Picture, last: Picture | null): Generator<void> {
  const { raster, window, columns } = picture;
  const shift = last ? (window.top - last.window.top) * picture.ratio : 0;
  for (const [run, column] of columns) {
    const before = last?.columns.get(run);
    const same = before?.width === column.width && column.inputs.every((input, i) => input === before.inputs[i]);
    const carried = last && same && Number.isInteger(shift);
    if (carried) carryColumns(raster, column.x, column.width, last.raster, before.x, shift);
    for (const place of carried ? fresh(window, last.window) : window.places) paintRow(picture, column, place);
    yield;
  }
}

interface Props extends RowProps {
  layout: Layout;
  window: Window;
}

export function Strips({ layout, window, width, pitch, count, left, top, height }: Props) {
  const last = useRef<Picture | null>(null);
  const found = shownRuns.value.slice(...sight.value).flatMap((run, at) => {
    const drawn = stripsOf(run);
    return drawn ? [{ name: run.name, at, drawn }] : [];
  });
  const names = found.map(({ name }) => name).join();
  const columnsOf = (ratio: number): [string, Column][] =>
    found.map(({ name, at, drawn }) => {
      const inputs = [drawn.overview, drawn.base, drawn.base && measure.value, layout, theme.value, range.value];
      return [name, { x: Math.round(at * pitch * ratio), width: Math.round(width * ratio), drawn, inputs }];
    });
  return (
    <RasterCanvas
      class="strips"
      label={`Channels in each state over steps, by layer, of ${plural(found.length, "run")}`}
      width={(count - 1) * pitch + width}
      height={height}
      style={{ left: `${left}px`, top: `${top}px` }}
      inputs={[
        window,
        layout,
        theme.value,
        measure.value,
        ...found.flatMap(({ drawn }) => [drawn.overview, drawn.base]),
      ]}
      urgent={names}
      steps
      paint={function* (raster, _, __, ratio) {
        const picture = { raster, ratio, window, columns: new Map(columnsOf(ratio)) };
        yield* paintAll(picture, last.current);
        last.current = picture;
      }}
    />
  );
}
