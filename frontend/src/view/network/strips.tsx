/** The strips of all columns in sight, as one picture: a canvas for each run would be a layer that every frame composes. */

import { useRef } from "preact/hooks";
import { pixelsOf } from "../../draw/palette";
import { type Box, carryColumns, fillBox, type Raster } from "../../draw/raster";
import { drawStrip } from "../../draw/strip";
import { drawStripDifference } from "../../draw/versus";
import { plural } from "../../model/format";
import { type Overview, sumOf } from "../../model/overview";
import type { Scale } from "../../model/scale";
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

/** Draws a row into a column of the picture. */
function paint(
  raster: Raster,
  column: Box,
  place: Place,
  drawn: Drawn,
  window: Window,
  scale: Scale,
  ratio: number,
): void {
  const { overview, base } = drawn;
  const pixels = pixelsOf(theme.value);
  const top = Math.max(0, Math.round((place.stripTop - window.top) * ratio));
  const bottom = Math.min(Math.round((place.stripTop + place.stripHeight - window.top) * ratio), raster.height);
  const box = { ...column, y: top, height: bottom - top };
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
  fillBox(raster, { ...box, x: box.x + box.width - line, width: line }, pixels.violated);
}

/** A picture that scrolling goes on with. */
interface Last {
  window: Window;
  raster: Raster;
  /** By run where its column is, and what it was drawn from. */
  columns: Map<string, { x: number; width: number; inputs: readonly unknown[] }>;
}

/** The rows of a window that an earlier one doesn't show whole. */
const fresh = (window: Window, { top, bottom }: Window): readonly Place[] =>
  window.places.filter((place) => place.stripTop < top || place.stripTop + place.stripHeight > bottom);

/** Draws column after column; what the last picture has of one is carried. */
function* paintAll(
  raster: Raster,
  last: Last | null,
  next: Last,
  found: readonly [Run, Drawn][],
  ratio: number,
  scale: Scale,
) {
  const shift = last ? (next.window.top - last.window.top) * ratio : 0.5;
  for (const [run, drawn] of found) {
    const column = next.columns.get(run.name)!;
    const { x, width, inputs } = column;
    const before = last?.columns.get(run.name);
    const same = before?.width === width && inputs.every((input, i) => input === before.inputs[i]);
    const carried = last && same && Number.isInteger(shift);
    if (carried) carryColumns(raster, x, width, last.raster, before.x, shift);
    for (const place of carried ? fresh(next.window, last.window) : next.window.places) {
      paint(raster, { x, y: 0, width, height: 0 }, place, drawn, next.window, scale, ratio);
    }
    yield;
  }
}

interface Props extends RowProps {
  layout: Layout;
  window: Window;
}

export function Strips({ layout, window, width, pitch, count, left, top, height }: Props) {
  const last = useRef<Last | null>(null);
  const runs = shownRuns.value.slice(...sight.value);
  const found = runs.flatMap((run): [Run, Drawn][] => {
    const drawn = stripsOf(run);
    return drawn ? [[run, drawn]] : [];
  });
  const inputs = found.flatMap(([{ name }, { overview, base }]) => [name, overview, base]);
  return (
    <RasterCanvas
      class="strips"
      label={`Channels in each state over steps, by layer, of ${plural(found.length, "run")}`}
      width={count * pitch - (pitch - width)}
      height={height}
      style={{ left: `${left}px`, top: `${top}px` }}
      inputs={[window, layout, theme.value, measure.value, ...inputs]}
      urgent={found.map(([run]) => run.name).join()}
      steps
      paint={function* (raster, _, __, ratio) {
        const columns = new Map(
          found.map(([run, { overview, base }]) => {
            const x = Math.round(runs.indexOf(run) * pitch * ratio);
            const own = [overview, base, base && measure.value, layout, theme.value, range.value];
            return [run.name, { x, width: Math.round(width * ratio), inputs: own }];
          }),
        );
        const next = { window, raster, columns };
        yield* paintAll(raster, last.current, next, found, ratio, scaleOf(width));
        last.current = next;
      }}
    />
  );
}
