/** Colour distances as people with and without colour blindness see them; for tests, the page doesn't use it. */

type Triple = [number, number, number];
type Matrix = [Triple, Triple, Triple];

/** Machado, Oliveira and Fernandes 2009, severity 1: normal, protan, deutan, tritan. */
export const VISIONS: Matrix[] = [
  [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
];

const apply = (matrix: Matrix, [x, y, z]: Triple): Triple =>
  matrix.map(([a, b, c]) => Math.min(1, Math.max(0, a * x + b * y + c * z))) as Triple;

const linear = (hex: string): Triple =>
  [1, 3, 5].map((at) => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as Triple;

/** Contrast of two colours as WCAG 2 counts it, 1 to 21. */
export function contrast(first: string, second: string): number {
  const [low, high] = [first, second]
    .map((hex) => linear(hex).reduce((sum, part, i) => sum + [0.2126, 0.7152, 0.0722][i] * part, 0.05))
    .sort((a, b) => a - b);
  return high / low;
}

/** L* of a colour as seen with a vision, 0 to 100. */
export const lightness = (hex: string, vision: Matrix): number => lab(hex, vision)[0];

function lab(hex: string, vision: Matrix): Triple {
  const [r, g, b] = apply(vision, linear(hex));
  const f = (t: number) => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116);
  const x = f((0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047);
  const y = f(0.2126729 * r + 0.7151522 * g + 0.072175 * b);
  const z = f((0.0193339 * r + 0.119192 * g + 0.9503041 * b) / 1.08883);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

const RAD = Math.PI / 180;
const hue = (a: number, b: number): number => (Math.atan2(b, a) / RAD + 360) % 360;

/** CIEDE2000 (Sharma, Wu, Dalal 2005) between two colours as seen with a vision. */
export function distance(first: string, second: string, vision: Matrix): number {
  const [l1, a1, b1] = lab(first, vision);
  const [l2, a2, b2] = lab(second, vision);
  const c7 = ((Math.hypot(a1, b1) + Math.hypot(a2, b2)) / 2) ** 7;
  const g = 1.5 - 0.5 * Math.sqrt(c7 / (c7 + 25 ** 7));
  const [c1, c2] = [Math.hypot(a1 * g, b1), Math.hypot(a2 * g, b2)];
  const [h1, h2] = [hue(a1 * g, b1), hue(a2 * g, b2)];
  let dh = c1 * c2 === 0 ? 0 : h2 - h1;
  if (Math.abs(dh) > 180) dh -= Math.sign(dh) * 360;
  const l = (l1 + l2) / 2;
  const c = (c1 + c2) / 2;
  let h = h1 + h2;
  if (c1 * c2 !== 0) h = Math.abs(h1 - h2) <= 180 ? h / 2 : (h + (h < 360 ? 360 : -360)) / 2;
  const t =
    1 -
    0.17 * Math.cos(RAD * (h - 30)) +
    0.24 * Math.cos(RAD * 2 * h) +
    0.32 * Math.cos(RAD * (3 * h + 6)) -
    0.2 * Math.cos(RAD * (4 * h - 63));
  const dl = (l2 - l1) / (1 + (0.015 * (l - 50) ** 2) / Math.sqrt(20 + (l - 50) ** 2));
  const dc = (c2 - c1) / (1 + 0.045 * c);
  const dhue = (2 * Math.sqrt(c1 * c2) * Math.sin((dh * RAD) / 2)) / (1 + 0.015 * c * t);
  const turn = 60 * RAD * Math.exp(-(((h - 275) / 25) ** 2));
  const rt = -Math.sin(turn) * 2 * Math.sqrt(c ** 7 / (c ** 7 + 25 ** 7));
  return Math.sqrt(dl ** 2 + dc ** 2 + dhue ** 2 + rt * dc * dhue);
}
