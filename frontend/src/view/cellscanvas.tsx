/** Channels over steps, coloured by state and delta: the heatmap, a thumbnail, a barcode. */

import { drawCells } from "../draw/heatmap";
import { pixelsOf } from "../draw/palette";
import { differenceStyle } from "../draw/versus";
import type { Cells } from "../model/cells";
import type { Mode } from "../model/hash";
import { RasterCanvas } from "./canvas";
import { range, scaleOf } from "./data";
import { theme } from "./store";

interface Props {
  /** A sentence that says what the picture shows. */
  label: string;
  cells: Cells;
  /** The channels to draw, from the top. */
  rows: Uint32Array;
  mode: Mode;
  /** Whether the cells are differences to the baseline. */
  differences?: boolean;
  width: number;
  height: number;
}

export function CellsCanvas({ label, cells, rows, mode, differences, width, height }: Props) {
  return (
    <RasterCanvas
      label={label}
      width={width}
      height={height}
      inputs={[cells, rows, mode, theme.value, ...range.value]}
      paint={(raster, box, w) => {
        const own = { mode, threshold: cells.header.threshold, pixels: pixelsOf(theme.value) };
        const style = differences ? differenceStyle(theme.value) : own;
        drawCells(raster, box, cells, rows, scaleOf(w), style);
      }}
    />
  );
}
