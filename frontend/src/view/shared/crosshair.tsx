/** The line at the step under the pointer, or at the cursor. */

interface Props {
  /** Its place; out of the picture nothing is drawn. */
  x: number;
  width: number;
  /** By default that of what it lies in. */
  height?: number;
}

/** Moved by its transform, at whole pixels: nothing is laid out or painted again, and the line stays sharp. */
export function Crosshair({ x, width, height }: Props) {
  if (!(x >= 0 && x <= width)) return null;
  const style = { transform: `translateX(${Math.round(x)}px)`, ...(height && { height: `${height}px` }) };
  return <i class="crosshair" style={style} />;
}

interface RowProps {
  x: number;
  /** Of a picture. */
  width: number;
  /** From the begin of one to that of the next. */
  pitch: number;
  count: number;
  left: number;
  top: number;
  height: number;
}

/** The same line in a row of pictures that are equally wide: one layer for all of them is moved. */
export function Crosshairs({ x, width, pitch, count, left, top, height }: RowProps) {
  if (!(x >= 0 && x <= width)) return null;
  const style = {
    transform: `translateX(${Math.round(x)}px)`,
    left: `${left}px`,
    top: `${top}px`,
    width: `${(count - 1) * pitch + 1}px`,
    height: `${height}px`,
    backgroundSize: `${pitch}px 2px`,
  };
  return <i class="crosshairs" style={style} />;
}
