/** Channels over steps, coloured by state and delta: the heatmap, a thumbnail, a barcode. */

import type { Cells } from "../data/cells";
import type { Mode } from "../data/urlstate";
import { aliveStyle, differenceStyle } from "../draw/difference";
import { drawParts } from "../draw/heatmap";
import { pixelsOf } from "../draw/theme";
import { scaleOf } from "../state/runs";
import { theme } from "../state/store";
import { RasterCanvas } from "./canvas";

interface Props {
  /** A sentence that says what the picture shows. */
  label: string;
  cells: Cells;
  /** The channels to draw, from the top. */
  rows: Uint32Array;
  mode: Mode;
  /** Whether the cells are differences to the baseline. */
  differences?: boolean;
  /** The colours of two runs, where the cells tell in which of them a channel is alive. */
  alive?: readonly [string, string];
  width: number;
  height: number;
}

export function CellsCanvas({ label, cells, rows, mode, differences, alive, width, height }: Props) {
  return (
    <RasterCanvas
      label={label}
      width={width}
      height={height}
      inputs={[cells, rows, mode, theme.value, alive?.join()]}
      steps
      paint={function* (raster, box, w) {
        const own = { mode, threshold: cells.header.threshold, pixels: pixelsOf(theme.value) };
        const style = alive ? aliveStyle(theme.value, alive) : differences ? differenceStyle(theme.value) : own;
        yield* drawParts(raster, box, cells, rows, scaleOf(w), style);
      }}
    />
  );
}
