/** The strips of all columns in sight, as one picture: a canvas for each run would be a layer that every frame composes. */

import { useRef } from "preact/hooks";
import { pixelsOf } from "../../draw/palette";
import { carryColumns, carryRows, fillBox, makeRaster, type Raster } from "../../draw/raster";
import { drawStrip } from "../../draw/strip";
import { drawStripDifference } from "../../draw/versus";
import { plural } from "../../model/format";
import { type Overview, sumOf } from "../../model/overview";
import { violations } from "../../model/series";
import { Canvas } from "../shared/canvas";
import type { RowProps } from "../shared/crosshair";
import { against } from "../state/baseline";
import { overviewOf, type Run, range, scaleOf, shownRuns } from "../state/data";
import { finestOf } from "../state/detail";
import { stripBlock } from "../state/scrolled";
import { sight } from "../state/sight";
import { measure, theme } from "../state/store";
import type { Layout, Place, Window } from "./geometry";
import { type Paint, usePrepared } from "./prepared";

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

/** The columns of an earlier picture that the new one has as they were. */
function kept({ columns, ratio, window }: Picture, last: Picture | null): Map<string, Column> {
  if (!last || !Number.isInteger((window.top - last.window.top) * ratio)) return new Map();
  const same = ([run, { width, inputs }]: [string, Column]) => {
    const before = columns.get(run);
    return before?.width === width && before.inputs.every((input, i) => input === inputs[i]);
  };
  return new Map([...last.columns].filter(same));
}

/** Draws column after column; what the last picture has of one is carried. */
function* paintAll(picture: Picture, last: Picture | null): Generator<void> {
  const { raster, window, columns, ratio } = picture;
  const before = kept(picture, last);
  const shift = last ? (window.top - last.window.top) * ratio : 0;
  const all = last?.raster.width === raster.width && before.size === last.columns.size;
  const whole = all && [...columns].every(([run, { x }]) => before.get(run)?.x === x);
  if (whole) {
    carryRows(raster, last.raster, shift);
    yield;
  }
  for (const [run, column] of columns) {
    const old = last && before.get(run);
    if (old && !whole) carryColumns(raster, column.x, column.width, last.raster, old.x, shift);
    for (const place of old ? fresh(window, last.window) : window.places) {
      paintRow(picture, column, place);
      yield;
    }
  }
}

interface Props extends RowProps {
  layout: Layout;
  /** What is drawn around a block. */
  windowAt: (block: number) => Window;
}

/** The runs in sight whose strips can be drawn. */
const drawable = () =>
  shownRuns.value.slice(...sight.value).flatMap((run, at) => {
    const drawn = stripsOf(run);
    return drawn ? [{ name: run.name, at, drawn }] : [];
  });

/** Paints a window from the last picture and what that doesn't have. */
function usePaint(found: ReturnType<typeof drawable>, { layout, width, pitch, count }: Props): Paint {
  const last = useRef<Picture | null>(null);
  const columnsOf = (ratio: number): [string, Column][] =>
    found.map(({ name, at, drawn }) => {
      const inputs = [drawn.overview, drawn.base, drawn.base && measure.value, layout, theme.value, range.value];
      return [name, { x: Math.round(at * pitch * ratio), width: Math.round(width * ratio), drawn, inputs }];
    });
  return function* (window, ratio) {
    const [across, down] = [(count - 1) * pitch + width, window.bottom - window.top];
    const raster = makeRaster(Math.round(across * ratio), Math.round(down * ratio), ratio);
    const picture = { raster, ratio, window, columns: new Map(columnsOf(ratio)) };
    yield* paintAll(picture, last.current);
    last.current = picture;
    return raster;
  };
}

export function Strips(props: Props) {
  const { layout, windowAt, width, pitch, count, left, top, height } = props;
  const found = drawable();
  const names = found.map(({ name }) => name).join();
  const window = windowAt(stripBlock.value);
  const draw = usePrepared(stripBlock, windowAt, usePaint(found, props));
  return (
    <Canvas
      whole
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
      draw={draw}
    />
  );
}
