/** The line at the step under the pointer, or at the cursor. It alone follows the pointer: what it lies over stays. */

import { toPixel } from "../../model/scale";
import { readStep } from "../state/cursor";
import { scaleOf } from "../state/data";

/** Moved by its transform, at whole pixels: nothing is laid out or painted again, and the line stays sharp. */
function transform(width: number): string | null {
  const x = toPixel(scaleOf(width), readStep.value);
  return x >= 0 && x <= width ? `translateX(${Math.round(x)}px)` : null;
}

interface Props {
  /** Of the picture; out of it nothing is drawn. */
  width: number;
  /** By default that of what it lies in. */
  height?: number;
}

export function Crosshair({ width, height }: Props) {
  const moved = transform(width);
  return moved && <i class="crosshair" style={{ transform: moved, ...(height && { height: `${height}px` }) }} />;
}

export interface RowProps {
  /** Of each picture. */
  width: number;
  /** From the begin of one to that of the next. */
  pitch: number;
  count: number;
  left?: number;
  /** By default at the bottom. */
  top?: number;
  height: number;
}

/** The same line in a row of pictures that are equally wide: one layer for all of them is moved. */
export function Crosshairs({ width, pitch, count, left = 0, top, height }: RowProps) {
  const moved = transform(width);
  if (!moved || count === 0) return null;
  const style = {
    transform: moved,
    left: `${left}px`,
    [top === undefined ? "bottom" : "top"]: `${top ?? 0}px`,
    width: `${(count - 1) * pitch + 1}px`,
    height: `${height}px`,
    backgroundSize: `${pitch}px 2px`,
  };
  return <i class="crosshairs" style={style} />;
}
