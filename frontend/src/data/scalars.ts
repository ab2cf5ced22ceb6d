/** A scalar that the training logged by itself, on the axis of the run. */

import { type Container, section } from "../server/container";
import type { ScalarsHeader } from "../server/types";
import { formatCount } from "./format";
import { lastAtOrBefore } from "./steps";

export interface Scalars {
  names: readonly string[];
  name: string | null;
  placed: "step" | "time";
  /** The place of each point on the run's axis, rising. */
  at: Float64Array;
  /** The point's own step. */
  steps: Float64Array;
  values: Float64Array;
}

export function readScalars(container: Container<ScalarsHeader>): Scalars {
  const { names, name, placed } = container.header;
  const part = (own: string) => section(container, own, Float64Array);
  return { names, name, placed, at: part("at"), steps: part("steps"), values: part("values") };
}

/** Of the names that were read one that all have, as far as they have any; else the first. */
export function commonName(all: readonly Pick<Scalars, "names" | "name">[]): string | null {
  const read = all.flatMap(({ name }) => name ?? []);
  return read.find((name) => all.every(({ names }) => !names.length || names.includes(name))) ?? read[0] ?? null;
}

/** Four digits, as many as a loss is compared by. */
export function formatScalar(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(3).replace("-", "−").replace("e+", "e");
  return String(Number(value.toPrecision(4))).replace("-", "−");
}

/** The nearest earlier point: its value, and its step where that is another one; null where there is none. */
export function scalarAt({ at, steps, values }: Scalars, step: number): { value: string; own: string } | null {
  const place = lastAtOrBefore(at, step);
  if (place < 0) return null;
  return { value: formatScalar(values[place]), own: steps[place] === step ? "" : formatCount(steps[place]) };
}
