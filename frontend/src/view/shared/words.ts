/** Numbers of a readout as sentences. */

import type { Cells } from "../../model/cells";
import { deltaAt } from "../../model/cells";
import { formatCount, formatNumber, formatShare, plural } from "../../model/format";
import type { Readout } from "../../model/series";
import { LEGEND, NO_DATA, STATE_BITS, STATE_NAMES } from "../../model/states";
import { ALIKE } from "../../model/versus";
import { sparsityText } from "../../model/violations";
import type { Account } from "../../wire/types";

/** The two largest states, for the header of a run. */
export function largest(readout: Readout): { state: number; count: number }[] {
  return LEGEND.map((state) => ({ state, count: readout.counts[state] }))
    .sort((a, b) => b.count - a.count)
    .slice(0, 2)
    .filter((entry, i) => i === 0 || entry.count > 0);
}

/** "8,000 (80.0%)", the pruned weights of all that can be pruned, or null */
export function weightsText(readout: Readout): string | null {
  const share = sparsityText(readout);
  return share === null ? null : `${formatCount(readout.pruned)} (${share})`;
}

/** "93% moving, 6.5% settled, 2 channels violated" */
export function sharesText(readout: Readout | null): string {
  if (!readout || readout.total === 0) return "no record";
  const parts = LEGEND.filter((state) => readout.counts[state] > 0).map(
    (state) => `${formatShare(readout.counts[state], readout.total)} ${STATE_NAMES[state]}`,
  );
  if (readout.violated > 0) parts.push(`${plural(readout.violated, "channel")} moved although held`);
  if (readout.nonfinite > 0) parts.push(`${plural(readout.nonfinite, "channel")} with values that aren't finite`);
  if (readout.pruned > 0) parts.push(`${sparsityText(readout)} of the weights pruned`);
  return parts.join(", ");
}

/** Of channels against the baseline's at a record: "2 in another state, 5 move more, 3 less, 6 alike" */
export function differencesText(differences: Cells, record: number): string {
  const counts = { other: 0, more: 0, less: 0, alike: 0 };
  for (let c = 0; c < differences.channels; c++) {
    const at = c * differences.records + record;
    const state = differences.state[at] & STATE_BITS;
    const decades = deltaAt(differences, at);
    if (state === NO_DATA) continue;
    counts[state !== ALIKE ? "other" : decades > 0 ? "more" : decades < 0 ? "less" : "alike"]++;
  }
  const { other, more, less, alike } = counts;
  if (other + more + less + alike === 0) return "no record at the same step";
  return `${plural(other, "channel")} in another state, ${formatCount(more)} move more, ${formatCount(less)} less, ${formatCount(alike)} alike`;
}

export const stepText = (step: number): string => `step ${formatCount(step)}`;

/** "changed by 2.1×10⁻³ of its norm" */
export const deltaText = (delta: number): string =>
  Number.isFinite(delta) ? `relative delta ${formatNumber(delta)}` : "moved away from zero";

/** The past that a run was recorded against, in words. */
export function pastText(past: string | null): string {
  if (!past) return "a past that isn't known";
  if (past === "previous") return "the step before";
  if (past === "record") return "the last record";
  if (past === "epoch") return "the end of the last epoch";
  if (past === "initial") return "the initial weights";
  return /^\d+$/.test(past) ? `${formatCount(Number(past))} steps before` : past;
}

/** "840 records shown", and what else became of those offered. */
export function accountText(account: Account): string {
  const parts = (["superseded", "thinned", "dropped", "unreadable"] as const)
    .filter((part) => account[part] > 0)
    .map((part) => `${formatCount(account[part])} ${part}`);
  const shown = `${formatCount(account.shown)} of ${plural(account.offered, "record")} shown`;
  return [shown, ...parts].join(", ");
}
