/** The line at the step under the pointer, or at the cursor. */

interface Props {
  /** Its place; out of the picture nothing is drawn. */
  x: number;
  width: number;
  /** By default that of what it lies in. */
  height?: number;
}

/** Moved by its transform, at whole pixels: nothing is laid out again, and the line stays sharp. */
export function Crosshair({ x, width, height }: Props) {
  if (!(x >= 0 && x <= width)) return null;
  const style = { transform: `translateX(${Math.round(x)}px)`, ...(height && { height: `${height}px` }) };
  return <i class="crosshair" style={style} />;
}
