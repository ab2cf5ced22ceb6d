/** Numbers as sentences. */

import { ABSENT } from "../data/absent";
import { type Cells, deltaAt } from "../data/cells";
import { ALIKE } from "../data/difference";
import { formatCount, formatShare, plural } from "../data/format";
import type { Figures } from "../data/record";
import { LISTED, NO_DATA, STATE_BITS, STATE_NAMES } from "../data/states";
import { sparsityText } from "../data/violations";
import type { Account } from "../server/types";
import { insteadText, type Resource } from "../state/resource";

/** The two largest states, for the header of a run. */
export function largest(figures: Figures): { state: number; count: number }[] {
  return LISTED.map((state) => ({ state, count: figures.counts[state] }))
    .sort((a, b) => b.count - a.count)
    .slice(0, 2)
    .filter((entry, i) => i === 0 || entry.count > 0);
}

/** "8,000 (80.0%)", the pruned weights of all that can be pruned, or null */
export function weightsText(figures: Figures): string | null {
  const share = sparsityText(figures);
  return share === null ? null : `${formatCount(figures.pruned)} (${share})`;
}

/** "step 1,680", or "steps 1,600 to 1,680" where layers have their newest records at different steps. */
export const stepsText = ({ oldest, step }: Figures): string =>
  oldest === step ? stepText(step) : `steps ${formatCount(oldest)} to ${formatCount(step)}`;

/** " (step 1,680)" where figures are of another step than the one that is read. */
export const asideText = (figures: Figures | null, step: number): string =>
  !figures || (figures.step === step && figures.oldest === step) ? "" : ` (${stepsText(figures)})`;

/**
 * "93% moving, 6.5% quiet, 2 channels violated"
 *
 * @param answer which the figures come from, if that may still be lacking.
 */
export function sharesText(figures: Figures | null, answer: Resource<unknown> | null = null): string {
  if (!figures || figures.total === 0) return insteadText(answer);
  const parts = LISTED.filter((state) => figures.counts[state] > 0).map(
    (state) => `${formatShare(figures.counts[state], figures.total)} ${STATE_NAMES[state]}`,
  );
  if (figures.violated > 0) parts.push(`${plural(figures.violated, "channel")} violated`);
  if (figures.pruned > 0) parts.push(`sparsity ${sparsityText(figures)}`);
  return parts.join(", ");
}

/** Of channels against the baseline's at a record: "2 in another state, 5 move more, 3 less, 6 the same" */
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
  if (other + more + less + alike === 0) return ABSENT.sameStep;
  return `${plural(other, "channel")} in another state, ${formatCount(more)} move more, ${formatCount(less)} less, ${formatCount(alike)} the same`;
}

export const stepText = (step: number): string => `step ${formatCount(step)}`;

/** The past that a run was recorded against, in words; at a record, which is so many steps after its own past. */
export function pastText(past: string | null, lag: number | null = null): string {
  if (!past) return "an unknown past";
  if (past === "previous" && lag !== null && lag > 1) return `${formatCount(lag)} steps earlier`;
  if (past === "previous") return "the previous step";
  if (past === "record") return "the previous record";
  if (past === "epoch") return "the end of the last epoch";
  if (past === "initial") return "the initial weights";
  return /^\d+$/.test(past) ? `${formatCount(Number(past))} steps earlier` : past;
}

/** What differs between the runs' pasts, said once for all of them; null where nothing does. */
export function pastsText(runs: readonly { name: string; past: string | null }[]): string | null {
  const pasts = new Map<string | null, string[]>();
  for (const { past, name } of runs) pasts.set(past, [...(pasts.get(past) ?? []), name]);
  if (pasts.size < 2) return null;
  const texts = [...pasts].map(
    ([past, names]) => `${names.length > 3 ? plural(names.length, "run") : names.join(", ")}: ${pastText(past)}`,
  );
  return `The runs use different pasts, so their changes can't be compared: ${texts.join("; ")}.`;
}

/** "840 of 1,000 records shown", and what became of the others. */
export function accountText(account: Account): string {
  const parts = (["superseded", "thinned", "dropped", "unreadable"] as const)
    .filter((part) => account[part] > 0)
    .map((part) => `${formatCount(account[part])} ${part}`);
  const shown = `${formatCount(account.shown)} of ${plural(account.offered, "record")} shown`;
  return [shown, ...parts].join(", ");
}
