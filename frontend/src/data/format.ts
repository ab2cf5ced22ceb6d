/** Numbers as text. */

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

const superscript = (n: number): string =>
  (n < 0 ? "⁻" : "") + [...String(Math.abs(n))].map((digit) => SUPERSCRIPTS[Number(digit)]).join("");

// Kept: toLocaleString makes one for each call.
const COUNTS = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** 21,000 */
export const formatCount = (value: number): string => COUNTS.format(value);

/** 10k, 2.5M: for the ticks of an axis, which are short only where that is exact. */
export function formatShort(value: number): string {
  for (const [unit, letter, grain] of [
    [1e9, "G", 1e7],
    [1e6, "M", 1e4],
    [1e3, "k", 1e2],
  ] as const) {
    const size = Math.abs(value) / unit;
    if (size >= 1 && size < 10_000 && value % grain === 0) return `${value / unit}${letter}`;
  }
  return formatCount(value);
}

/** 1.2 MB */
export function formatBytes(value: number): string {
  let unit = 0;
  for (; value >= 999.5 && unit < 3; unit++) value /= 1000;
  return `${unit > 0 && value < 9.95 ? value.toFixed(1) : formatCount(value)} ${["B", "kB", "MB", "GB"][unit]}`;
}

/** A share of a whole. It reads 0 % and 100 % only where it is exactly that. */
export function formatShare(part: number, whole: number): string {
  if (!(whole > 0)) return "–";
  if (part === 0) return "0%";
  if (part === whole) return "100%";
  const percent = (100 * part) / whole;
  if (percent < 0.1) return "<0.1%";
  if (percent > 99.9) return ">99.9%";
  if (percent < 10) return `${percent.toFixed(1)}%`;
  return percent > 99 ? `${(Math.floor(percent * 10) / 10).toFixed(1)}%` : `${percent.toFixed(0)}%`;
}

/**
 * The share of whole elements that a recorded one stands for: records round shares, by `precision` of their value, so
 * that a channel of few elements gives its exact share back.
 */
export function wholeShare(share: number, elements: number, precision: number): number {
  const count = share * elements;
  return elements > 0 && count * precision < 0.5 ? Math.round(count) / elements : share;
}

/** A share that keeps its decimal, for shares that are compared closely: 80.0%. */
export function formatFineShare(part: number, whole: number): string {
  const percent = (100 * part) / whole;
  if (!(percent >= 10 && percent < 100)) return formatShare(part, whole);
  return percent > 99.9 ? ">99.9%" : `${percent.toFixed(1)}%`;
}

/** 2.1×10⁻³; exact powers as 10⁻⁴, zero as 0, between 0.01 and 10,000 without an exponent. */
export function formatNumber(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === 0) return "0";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  const sign = value < 0 ? "−" : "";
  if (size >= 0.01 && size < 10_000) return sign + String(Number(size.toPrecision(3)));
  return sign + formatPower(size);
}

/** The same always with an exponent. */
export function formatPower(size: number): string {
  let exponent = Math.floor(Math.log10(size) + 1e-9);
  let mantissa = (size / 10 ** exponent).toFixed(1);
  if (mantissa === "10.0") {
    mantissa = "1.0";
    exponent++;
  }
  if (exponent === 0 && mantissa === "1.0") return "1";
  return mantissa === "1.0" ? `10${superscript(exponent)}` : `${mantissa}×10${superscript(exponent)}`;
}

/** 3 channels, 1 channel */
export function plural(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** 3×3×1×32; a scalar's empty shape reads "scalar" */
export const formatShape = (shape: readonly number[]): string => (shape.length > 0 ? shape.join("×") : "scalar");
