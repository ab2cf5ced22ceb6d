/** Flags of lanes: what happened at a step, as a shape and in words. */

import type { LaneFlag } from "../server/types";
import { formatCount, plural } from "./format";

/** Shapes in a box of 10 × 10, and what a flag of the kind says. */
export const FLAGS: Record<string, { title: string; path: string; text: (amount: number) => string }> = {
  freeze: { title: "frozen", path: "M1 1h8v8h-8z", text: (n) => `${plural(n, "channel")} frozen` },
  unfreeze: {
    title: "no longer frozen",
    path: "M1 1h8v8h-8zM3 3v4h4v-4z",
    text: (n) => `${plural(n, "channel")} no longer frozen`,
  },
  prune: { title: "pruned", path: "M0 1h10l-5 8z", text: (n) => `${plural(n, "weight")} pruned` },
  unprune: {
    title: "no longer pruned",
    path: "M0 9h10l-5 -8z",
    text: (n) => `${plural(n, "weight")} no longer pruned`,
  },
  nonfinite: {
    title: "NaN or infinity",
    path: "M0 2l2 -2 3 3 3 -3 2 2 -3 3 3 3 -2 2 -3 -3 -3 3 -2 -2 3 -3z",
    text: (n) => `${plural(n, "channel")} with NaN or infinity`,
  },
  violation: {
    title: "changed while frozen or pruned",
    path: "M5 0l5 5 -5 5 -5 -5z",
    text: (n) => `${plural(n, "channel")} changed while frozen or pruned`,
  },
  resume: { title: "resumed", path: "M1 0h3v10h-3zM6 0l4 5 -4 5z", text: () => "training resumed" },
};

/** "312 weights pruned, steps 80 to 320, at 4 records" */
export function flagText({ kind, first_step, last_step, times, amount }: LaneFlag): string {
  const what = FLAGS[kind]?.text(amount) ?? kind;
  if (first_step === last_step) return `${what}, step ${formatCount(first_step)}`;
  return `${what}, steps ${formatCount(first_step)} to ${formatCount(last_step)}, at ${plural(times, "record")}`;
}

/**
 * What is read at a place of a lane: the step of the nearest flag, and the flags that there are at it.
 *
 * @param near how many steps from a flag it is read, at most; where none is near, the step is that of the place.
 */
export function flagsAt(flags: readonly LaneFlag[], place: number, near: number): { step: number; flags: LaneFlag[] } {
  const own = flags.map(({ first_step, last_step }) => Math.min(Math.max(place, first_step), last_step));
  const far = own.map((step) => Math.abs(step - place));
  const nearest = far.indexOf(Math.min(near, ...far));
  if (nearest < 0) return { step: place, flags: [] };
  const step = own[nearest];
  return { step, flags: flags.filter(({ first_step, last_step }) => first_step <= step && step <= last_step) };
}
