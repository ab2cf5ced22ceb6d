/**
 * The strips of all columns in sight, as one picture: a canvas for each run would be a layer that every frame composes.
 */

import { useRef } from "preact/hooks";
import { plural } from "../../data/format";
import { keptByValue } from "../../data/kept";
import { cellsIn, type Layout, type Place, type Window } from "../../data/rowbox";
import { type Area, carryColumns, carryRows, makeRaster, type Raster } from "../../draw/raster";
import { drawStrip } from "../../draw/strip";
import { pixelsOf } from "../../draw/theme";
import { drawStripDifference } from "../../draw/valuerow";
import { Canvas, type Paint, usePrepared } from "../../parts/canvas";
import type { RowProps } from "../../parts/plot";
import { type Drawn, drawnOf } from "../../state/answers";
import { baseOf } from "../../state/baseline";
import { NOT_LOADED } from "../../state/resource";
import { type Run, range, scaleOf, shownRuns } from "../../state/runs";
import { measure, theme } from "../../state/store";
import { sight, stripBlock } from "../../state/viewport";

interface Pictured {
  drawn: Drawn;
  /** What it is drawn against. */
  base: Drawn | null;
}

/** What the strips of a run are drawn from, as soon as all of it is there. */
export function stripsOf(run: Run): Pictured | null {
  const drawn = drawnOf(run.name);
  const other = baseOf(run);
  const base = other && drawnOf(other.name);
  return drawn && (base || !other) ? { drawn, base } : null;
}

/** The place of a run's strips in the picture, in its pixels. */
interface Column {
  x: number;
  width: number;
  pictured: Pictured;
  /** What it depends on. */
  inputs: readonly unknown[];
}

/** A picture that scrolling continues from. */
interface Picture {
  raster: Raster;
  ratio: number;
  window: Window;
  /** By run. */
  columns: Map<string, Column>;
}

function paintRow({ raster, ratio, window }: Picture, { x, width, pictured }: Column, place: Place): void {
  const { drawn, base } = pictured;
  const pixels = pixelsOf(theme.value);
  const y = Math.max(0, Math.round((place.stripTop - window.top) * ratio));
  const bottom = Math.min(Math.round((place.stripTop + place.stripHeight - window.top) * ratio), raster.height);
  const area = { raster, x, y, width, height: bottom - y };
  if (area.height <= 0) return;
  const paint = (own: Area, layers: readonly string[]) => {
    const [columns, scale] = [drawn.of(layers), scaleOf(own.width)];
    if (base) drawStripDifference(own, columns, base.of(layers), measure.value, scale, pixels);
    else drawStrip(own, columns, scale, drawn.threshold, pixels);
  };
  const cells = cellsIn(place.row, width / ratio);
  if (!cells) paint(area, place.row.layers);
  cells?.forEach((layer, i) => {
    const [from, to] = [i, i + 1].map((at) => Math.round((at * width) / cells.length));
    if (layer !== null)
      paint(
        { ...area, x: x + from, width: to - from - (i + 1 < cells.length ? cellGap(ratio) : 0) },
        cellLayers(layer),
      );
  });
}

/** Of a layer the list that is kept: columns are added up once for each list. */
const cellLayers = keptByValue((layer: string) => [layer]);
const cellGap = (ratio: number): number => Math.round(2 * ratio);

/** The rows of a window that an earlier one doesn't show whole. */
const fresh = (window: Window, { top, bottom }: Window): readonly Place[] =>
  window.places.filter((place) => place.stripTop < top || place.stripTop + place.stripHeight > bottom);

/** The columns of an earlier picture that the new one has as they were. */
function kept({ columns, ratio, window }: Picture, last: Picture | null): Map<string, Column> {
  if (!last || !Number.isInteger((window.top - last.window.top) * ratio)) return new Map();
  const same = ([run, { width, inputs }]: [string, Column]) => {
    const column = columns.get(run);
    return column?.width === width && column.inputs.every((input, i) => input === inputs[i]);
  };
  return new Map([...last.columns].filter(same));
}

/** Draws column after column; what the last picture has of one is carried. */
function* paintAll(picture: Picture, last: Picture | null): Generator<void> {
  const { raster, window, columns, ratio } = picture;
  const carried = kept(picture, last);
  const shift = last ? (window.top - last.window.top) * ratio : 0;
  const all = last?.raster.width === raster.width && carried.size === last.columns.size;
  const whole = all && [...columns].every(([run, { x }]) => carried.get(run)?.x === x);
  if (whole) {
    carryRows(raster, last.raster, shift);
    yield;
  }
  for (const [run, column] of columns) {
    const old = last && carried.get(run);
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
  shownRuns.value.slice(...sight.value).flatMap((run, place) => {
    const pictured = stripsOf(run);
    return pictured ? [{ name: run.name, place, pictured }] : [];
  });

/** Paints a window from the last picture and what that doesn't have. */
function usePaint(strips: ReturnType<typeof drawable>, { layout, width, pitch, count }: Props): Paint {
  const last = useRef<Picture | null>(null);
  const columnsOf = (ratio: number): [string, Column][] =>
    strips.map(({ name, place, pictured }) => {
      const { drawn, base } = pictured;
      const inputs = [drawn, base, base && measure.value, layout, theme.value, range.value];
      return [name, { x: Math.round(place * pitch * ratio), width: Math.round(width * ratio), pictured, inputs }];
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
  const strips = drawable();
  const names = strips.map(({ name }) => name).join();
  const window = windowAt(stripBlock.value);
  const draw = usePrepared(stripBlock, windowAt, usePaint(strips, props));
  return (
    <Canvas
      whole
      class="strips"
      label={
        strips.length > 0
          ? `Channels in each state over steps, by layer, of ${plural(strips.length, "run")}`
          : NOT_LOADED
      }
      width={(count - 1) * pitch + width}
      height={height}
      style={{ left: `${left}px`, top: `${top}px` }}
      inputs={[
        window,
        layout,
        theme.value,
        measure.value,
        ...strips.flatMap(({ pictured }) => [pictured.drawn, pictured.base]),
      ]}
      urgent={names}
      steps
      draw={draw}
    />
  );
}
