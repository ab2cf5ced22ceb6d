/** Pictures of a window of the rows, painted before they are shown where one scrolls. */

import type { Signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Window } from "../../data/rowbox";
import { putRaster, type Raster } from "../../draw/raster";
import type { Draw } from "../../parts/canvas";
import { prepared } from "../../state/scrolled";

/** Paints a window, part by part. */
export type Paint = (window: Window, ratio: number) => Generator<void, Raster>;

/** What draws the window of a part's block, which follows scrolling as soon as its picture is ready. */
export function usePrepared(block: Signal<number>, windowAt: (block: number) => Window, paint: Paint): Draw {
  const ready = useRef<{ window: Window; raster: Raster } | null>(null);
  useLayoutEffect(() =>
    prepared(block, function* (at) {
      const window = windowAt(at);
      ready.current = { window, raster: yield* paint(window, devicePixelRatio || 1) };
    }),
  );
  const shown = windowAt(block.value);
  return function* (context, _width, _height, ratio) {
    const made = ready.current;
    ready.current = null;
    putRaster(context, made?.window === shown ? made.raster : yield* paint(shown, ratio));
  };
}
