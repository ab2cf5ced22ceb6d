/** A canvas at device resolution that redraws when its inputs or its size change. */

import { effect, type Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Window } from "../data/rowbox";
import type { Scale } from "../data/scale";
import { type Area, makeRaster, putRaster, type Raster, wholeOf } from "../draw/raster";
import { type Pixels, pixelsOf } from "../draw/theme";
import { prepared } from "../state/following";
import { never, schedule } from "../state/frames";
import { range, scaleOf } from "../state/runs";
import { theme } from "../state/store";
import { scrolled } from "../state/viewport";

/** Draws at once, or part by part. */
export type Draw = (
  context: CanvasRenderingContext2D,
  width: number,
  height: number,
  ratio: number,
) => Generator<void> | void;

export interface Size {
  width: number;
  height: number;
}

/** The content size of an element, followed. It may come later, and be replaced by another. */
export function useSize<E extends HTMLElement>() {
  const ref = useRef<E>(null);
  const [element, setElement] = useState<E | null>(null);
  const [size, setSize] = useState<Size>({ width: 0, height: 0 });
  useLayoutEffect(() => setElement(ref.current));
  useLayoutEffect(() => {
    if (!element) return;
    const read = () => {
      const { clientWidth: width, clientHeight: height } = element;
      setSize((last) => (last.width === width && last.height === height ? last : { width, height }));
    };
    const observer = new ResizeObserver(read);
    observer.observe(element);
    read();
    return () => observer.disconnect();
  }, [element]);
  return { ref, size };
}

interface SizedProps {
  class: string;
  /** Wider than this there is room for it. */
  least?: number;
  children: (size: Size) => ComponentChildren;
}

/** An element whose content needs its size. */
export function Sized({ least = 0, children, ...rest }: SizedProps) {
  const { ref, size } = useSize<HTMLDivElement>();
  return (
    <div ref={ref} {...rest}>
      {size.width > least ? children(size) : null}
    </div>
  );
}

/** Calls back at each change of the steps in sight; what it gives ends that. */
const onZoom = (callback: () => void) => {
  const first = range.peek();
  return effect(() => {
    if (range.value !== first) callback();
  });
};

interface CanvasProps {
  /** A sentence that says what the picture shows. */
  label: string;
  draw: Draw;
  /** Whether it replaces all pixels. */
  whole?: boolean;
  /** The picture is drawn again when one of these changes. */
  inputs: readonly unknown[];
  /** At once when this does, as when its place changes; else in frames that have time for it. */
  urgent?: string;
  /** Whether x is steps: zooming draws the picture again, and renders nothing for it. */
  steps?: boolean;
  width: number;
  height: number;
  style?: Record<string, string | number>;
  class?: string;
}

export function Canvas({ label, draw, whole, inputs, urgent, steps, width, height, style, ...rest }: CanvasProps) {
  const ref = useRef<HTMLCanvasElement>(null);
  const ratio = window.devicePixelRatio || 1;
  const place = [style?.left, style?.top, width, height, ratio, urgent].join(" ");
  const last = useRef("");
  const again = useRef(() => {});
  useLayoutEffect(() => {
    const canvas = ref.current;
    const context = canvas?.getContext("2d");
    if (!canvas || !context || width <= 0 || height <= 0) return;
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    let parts: Iterator<void> | null = null;
    /** Says whether there is more of it. */
    const redraw = (): boolean => {
      if (!parts) {
        if (canvas.width !== w || canvas.height !== h) {
          canvas.width = w;
          canvas.height = h;
        } else if (!whole) context.clearRect(0, 0, w, h);
        parts = draw(context, width, height, ratio) ?? [].values();
      }
      return !parts.next().done;
    };
    // Where a picture is, it can stay for some frames.
    again.current = () => {
      parts = null;
      schedule("draw", canvas, redraw);
    };
    never(canvas);
    if (place === last.current) again.current();
    else while (redraw());
    last.current = place;
  }, [place, ...inputs]);
  useLayoutEffect(() => {
    const canvas = ref.current;
    return () => never(canvas);
  }, []);
  useLayoutEffect(() => (steps ? onZoom(() => again.current()) : undefined), [steps]);
  return (
    <canvas
      ref={ref}
      role="img"
      aria-label={label}
      class={rest.class}
      style={{ width: `${width}px`, height: `${height}px`, ...style }}
    />
  );
}

/** Draws in CSS pixels, at a scale of steps. */
export const inPixels =
  (draw: (context: CanvasRenderingContext2D, scale: Scale) => void): Draw =>
  (context, width, _height, ratio) => {
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    draw(context, scaleOf(width));
    context.setTransform(1, 0, 0, 1, 0, 0);
  };

/** Draws the same part by part off screen, and shows it when it is complete. */
export function aside(draw: (context: OffscreenCanvasRenderingContext2D, scale: Scale) => Generator<void>): Draw {
  return function* (context, width, _, ratio) {
    const { width: w, height: h } = context.canvas;
    const own = new OffscreenCanvas(w, h).getContext("2d", { willReadFrequently: true })!;
    own.setTransform(ratio, 0, 0, ratio, 0, 0);
    for (const _part of draw(own, scaleOf(width))) {
      // Else the browser draws all parts when they are read.
      own.getImageData(0, 0, 1, 1);
      yield;
    }
    context.putImageData(own.getImageData(0, 0, w, h), 0, 0);
  };
}

/** What the pixels of a canvas are computed with. */
interface Paper {
  /** All its pixels. */
  area: Area;
  /** Pixels for one of the page. */
  ratio: number;
  /** Of the steps over its width, in CSS pixels. */
  scale: Scale;
  pixels: Pixels;
}

interface RasterProps extends Omit<CanvasProps, "draw" | "whole"> {
  /** Fills the pixels, shown when all are. */
  paint: (paper: Paper) => Generator<void> | void;
}

/** A canvas whose every pixel is computed. */
export function RasterCanvas({ paint, inputs, ...rest }: RasterProps) {
  const pixels = pixelsOf(theme.value);
  const draw: Draw = function* (context, width, height, ratio) {
    const raster = makeRaster(Math.round(width * ratio), Math.round(height * ratio), ratio);
    yield* paint({ area: wholeOf(raster), ratio, scale: scaleOf(width), pixels }) ?? [];
    putRaster(context, raster);
  };
  return <Canvas {...rest} inputs={[...inputs, pixels]} draw={draw} whole />;
}

/** Paints a window, part by part. */
export type Paint = (window: Window, ratio: number) => Generator<void, Raster>;

/** What draws the window of the rows around a part's block, which follows scrolling as soon as its picture is ready. */
export function usePrepared(block: Signal<number>, windowAt: (block: number) => Window, paint: Paint): Draw {
  const ready = useRef<{ window: Window; raster: Raster } | null>(null);
  useLayoutEffect(() =>
    prepared(block, scrolled, function* (wanted) {
      const window = windowAt(wanted);
      ready.current = { window, raster: yield* paint(window, devicePixelRatio || 1) };
    }),
  );
  const shown = windowAt(block.value);
  return function* (context, _width, _height, ratio) {
    const painted = ready.current;
    ready.current = null;
    putRaster(context, painted?.window === shown ? painted.raster : yield* paint(shown, ratio));
  };
}

/** Rows are drawn in blocks: scrolling rarely redraws. */
const BLOCK = 12;

/**
 * The place of rows of equal height in a panel that scrolls: few fill it, of many those in sight are drawn and some
 * around them; the chosen one (-1 for none) stays in sight.
 *
 * @param below what is below the rows and covers the last ones.
 */
export function useRows(count: number, chosen: number, [lowest, highest]: [number, number], below = 0) {
  const { ref, size } = useSize<HTMLDivElement>();
  const [scroll, setScroll] = useState(0);
  const pitch = Math.min(highest, Math.max(lowest, Math.floor((size.height - below) / Math.max(1, count))));
  const first = Math.max(0, (Math.floor(scroll / pitch / BLOCK) - 1) * BLOCK);
  const last = Math.min(count, first + Math.ceil(size.height / pitch / BLOCK) * BLOCK + 3 * BLOCK);
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element || chosen < 0) return;
    const low = (chosen + 1) * pitch + below - element.clientHeight;
    element.scrollTop = Math.min(chosen * pitch, Math.max(low, element.scrollTop));
  }, [chosen, pitch]);
  const scroller = {
    ref,
    tabIndex: 0,
    onScroll: (event: { currentTarget: HTMLElement }) => setScroll(event.currentTarget.scrollTop),
  };
  /** Rows [first, last) are drawn. */
  return { width: size.width, pitch, first, last, scroller };
}
