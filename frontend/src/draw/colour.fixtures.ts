/** Colours as people with and without colour blindness see them; for tests, the page doesn't use it. */

import { converter, differenceCiede2000, formatHex, lab65, wcagContrast } from "culori";

type Triple = [number, number, number];
type Matrix = [Triple, Triple, Triple];

/** Machado, Oliveira and Fernandes 2009, severity 1, on linear light: normal, protan, deutan, tritan. */
// biome-ignore format: a matrix reads as rows
export const VISIONS: Matrix[] = [
  [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
];

const linear = converter("lrgb");
const difference = differenceCiede2000();

function seen(hex: string, vision: Matrix): string {
  const color = linear(hex)!;
  const [r, g, b] = vision.map((row) => row[0] * color.r + row[1] * color.g + row[2] * color.b);
  return formatHex({ mode: "lrgb", r, g, b });
}

/** Contrast of two colours as WCAG 2 counts it, 1 to 21. */
export const contrast = wcagContrast;

/** L* of a colour as seen with a vision, 0 to 100. */
export const lightness = (hex: string, vision: Matrix): number => lab65(seen(hex, vision))!.l;

/** CIEDE2000 between two colours as seen with a vision. */
export const distance = (first: string, second: string, vision: Matrix): number =>
  difference(seen(first, vision), seen(second, vision));
