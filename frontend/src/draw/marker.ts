/** A run's marker: its colour and, because colour alone doesn't tell, a shape. */

export const SHAPES = 6;

const outlines = Array.from({ length: SHAPES }, (_, shape) => outline(shape));

/** The outline of a shape around (0, 0) as points, radius about 1; null is a circle. */
export const shapePoints = (shape: number): [number, number][] | null => outlines[shape % SHAPES];

function outline(shape: number): [number, number][] | null {
  switch (shape) {
    case 1:
      return [
        [-0.86, -0.86],
        [0.86, -0.86],
        [0.86, 0.86],
        [-0.86, 0.86],
      ];
    case 2:
      return [
        [0, -1.2],
        [1.2, 0],
        [0, 1.2],
        [-1.2, 0],
      ];
    case 3:
      return [
        [0, -1.15],
        [1.1, 0.85],
        [-1.1, 0.85],
      ];
    case 4:
      return [
        [0, 1.15],
        [1.1, -0.85],
        [-1.1, -0.85],
      ];
    case 5:
      return Array.from({ length: 10 }, (_, i) => {
        const radius = i % 2 === 0 ? 1.3 : 0.55;
        const angle = (Math.PI * i) / 5 - Math.PI / 2;
        return [radius * Math.cos(angle), radius * Math.sin(angle)] as [number, number];
      });
    default:
      return null;
  }
}

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
