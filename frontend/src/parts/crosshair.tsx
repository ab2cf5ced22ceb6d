/** The line at the step under the pointer, or at the cursor. It alone follows the pointer: what it lies over stays. */

import type { ComponentChildren } from "preact";
import { toPixel } from "../data/scale";
import { readStep } from "../state/cursor";
import { scaleOf } from "../state/runs";
import { movedTo } from "./moved";

/** Where it is in a picture; null where it is out of it. */
function place(width: number): number | null {
  const x = toPixel(scaleOf(width), readStep.value);
  return x >= 0 && x <= width ? x : null;
}

interface Props {
  /** Of the picture; out of it nothing is drawn. */
  width: number;
  /** By default that of what it lies in. */
  height?: number;
}

export function Crosshair({ width, height }: Props) {
  const x = place(width);
  return (
    x !== null && (
      <i ref={movedTo(x, 0)} class="crosshair" style={height === undefined ? {} : { height: `${height}px` }} />
    )
  );
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
  const x = place(width);
  if (x === null || count === 0) return null;
  const style = {
    left: `${left}px`,
    [top === undefined ? "bottom" : "top"]: `${top ?? 0}px`,
    width: `${(count - 1) * pitch + 1}px`,
    height: `${height}px`,
    backgroundSize: `${pitch}px 2px`,
  };
  return <i ref={movedTo(x, 0)} class="crosshairs" style={style} />;
}

/** The line at the middle of a row; what is written at it moves along. */
export function RowLine({ y, children }: { y: number; children?: ComponentChildren }) {
  return (
    <div ref={movedTo(0, Math.floor(y))} class="row-line">
      {children}
    </div>
  );
}
