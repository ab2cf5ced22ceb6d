/** Short texts for flags; the whole one is told on hover. */

import type { LayerEvent } from "../server/types";
import { formatFineShare } from "./format";

const LONGEST = 24;

const count = (text: string): number => Number(text.replaceAll(",", ""));

/** "lr ÷2" for a rate that fell to a half, "kept 25.0%" and "32 frozen" for a mask; other texts are cut. */
export function flagText(event: LayerEvent): string {
  if (event.kind === "learning_rate") {
    const rates = /([\d.e+-]+) → ([\d.e+-]+)/.exec(event.text);
    if (rates) return `lr ${rateText(Number(rates[1]), Number(rates[2]))}`;
  }
  if (event.kind === "kept" || event.kind === "trainable") {
    const weights = /^(kept|trainable) ([\d,]+) of ([\d,]+)/.exec(event.text);
    if (weights) return `${event.kind} ${formatFineShare(count(weights[2]), count(weights[3]))}`;
    const held = /^(\d+) of \d+ channels? frozen, (\d+) pruned/.exec(event.text);
    if (held) {
      const parts = [held[1] === "0" ? "" : `${held[1]} frozen`, held[2] === "0" ? "" : `${held[2]} pruned`];
      return parts.filter((part) => part !== "").join(", ") || "none held";
    }
  }
  return event.text.length > LONGEST ? `${event.text.slice(0, LONGEST - 1)}…` : event.text;
}

/** Factors near a whole number as ÷n or ×n (the rates are rounded), else the new rate. */
function rateText(before: number, after: number): string {
  for (const [factor, sign] of [
    [before / after, "÷"],
    [after / before, "×"],
  ] as const) {
    const whole = Math.round(factor);
    if (whole >= 2 && whole <= 1000 && Math.abs(factor / whole - 1) < 0.05) return `${sign}${whole}`;
  }
  return `→ ${after}`;
}
