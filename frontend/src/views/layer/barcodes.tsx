/** Single channels over steps, one below the other: a canvas for all, as each is a layer that every frame has to compose. */

import type { Cells } from "../../data/cells";
import { drawCells } from "../../draw/heatmap";
import { pixelsOf } from "../../draw/theme";
import { RasterCanvas } from "../../parts/canvas";
import { scaleOf } from "../../state/runs";
import { theme } from "../../state/store";

const HEIGHT = 14;

interface Barcode {
  /** A sentence that says what it shows. */
  label: string;
  cells: Cells;
  channel: number;
}

interface Props {
  codes: readonly Barcode[];
  /** Of a row. */
  height: number;
  width: number;
}

export function Barcodes({ codes, height, width }: Props) {
  const shown = codes.flatMap(({ cells, channel }) => [cells, channel]);
  return (
    <RasterCanvas
      label={codes.map(({ label }) => label).join(". ")}
      width={width}
      height={codes.length * height}
      inputs={[codes.length, ...shown, theme.value]}
      steps
      paint={function* (raster, box, w, ratio) {
        for (const [i, { cells, channel }] of codes.entries()) {
          const y = Math.round((i * height + (height - HEIGHT) / 2) * ratio);
          const row = { ...box, y, height: Math.round(HEIGHT * ratio) };
          const style = { mode: "both", threshold: cells.header.threshold, pixels: pixelsOf(theme.value) } as const;
          drawCells(raster, row, cells, Uint32Array.of(channel), scaleOf(w), style);
          yield;
        }
      }}
    />
  );
}
