/** A run's marker: its colour and, because colour isn't enough, a shape. */

export const SHAPES = 6;

/** Corners of the shapes, x and y alternately: square, diamond, triangles, star. */
const CORNERS: readonly (readonly number[])[] = [
  [-0.86, -0.86, 0.86, -0.86, 0.86, 0.86, -0.86, 0.86],
  [0, -1.2, 1.2, 0, 0, 1.2, -1.2, 0],
  [0, -1.15, 1.1, 0.85, -1.1, 0.85],
  [0, 1.15, 1.1, -0.85, -1.1, -0.85],
  Array.from({ length: 10 }, (_, i) => {
    const radius = i % 2 === 0 ? 1.3 : 0.55;
    const angle = (Math.PI * i) / 5 - Math.PI / 2;
    return [radius * Math.cos(angle), radius * Math.sin(angle)];
  }).flat(),
];

const OUTLINES = CORNERS.map((corners) =>
  Array.from({ length: corners.length / 2 }, (_, i): [number, number] => [corners[2 * i], corners[2 * i + 1]]),
);

/** The outline of a shape around (0, 0) as points, radius about 1; null is a circle, the first shape. */
export const shapePoints = (shape: number): [number, number][] | null =>
  shape % SHAPES === 0 ? null : OUTLINES[(shape % SHAPES) - 1];

export function drawMarker(
  context: CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D,
  x: number,
  y: number,
  radius: number,
  shape: number,
  fill: string,
  halo: string,
): void {
  const points = shapePoints(shape);
  context.beginPath();
  if (points) for (const [px, py] of points) context.lineTo(x + px * radius, y + py * radius);
  else context.arc(x, y, radius, 0, 2 * Math.PI);
  context.closePath();
  context.fillStyle = fill;
  context.strokeStyle = halo;
  context.lineWidth = 1.5;
  context.stroke();
  context.fill();
}
