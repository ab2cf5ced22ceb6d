/** Short texts for flags; the event's own text is told on hover. */

import type { LayerEvent } from "../server/types";
import { formatCount, formatFineShare } from "./format";

/** "lr ÷2" for a rate that fell to a half, "90.6 % remaining" and "frozen: 32" for a mask. */
export function flagText(event: LayerEvent): string {
  if (event.kind === "learning_rate") return `lr ${rateText(event.from, event.to)}`;
  if (event.kind === "restart") return "resumed";
  if ("through" in event) {
    return `${formatFineShare(event.through, event.elements)} ${event.kind === "kept" ? "remaining" : "trainable"}`;
  }
  const { frozen, pruned, channels } = event;
  const parts = [["frozen", frozen] as const, ["pruned", pruned] as const].filter(([, count]) => count > 0);
  const told = parts.map(([word, count]) => (count === channels ? `all ${word}` : `${word}: ${formatCount(count)}`));
  return told.join(", ") || "all released";
}

/** Factors near a whole number as ÷n or ×n (a schedule rounds), else the new rate. */
function rateText(before: number, after: number): string {
  for (const [factor, sign] of [
    [before / after, "÷"],
    [after / before, "×"],
  ] as const) {
    const whole = Math.round(factor);
    if (whole >= 2 && whole <= 1000 && Math.abs(factor / whole - 1) < 0.05) return `${sign}${whole}`;
  }
  return `→ ${Number(after.toPrecision(3))}`;
}
