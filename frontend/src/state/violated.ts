/** Held weights that moved, by run and layer: from the audit's list, which is exact. */

import { auditOf, byLayer, type LayerAudit } from "../data/violations";
import type { Violation, ViolationsAnswer } from "../server/types";
import { overviewOf, violationsOf } from "./answers";

export interface Violated {
  channels: number;
  firstStep: number;
  first: Violation;
}

const audits = new WeakMap<ViolationsAnswer, ReadonlyMap<string, LayerAudit>>();

/** What of some layers was violated in a run; null where nothing was, and while the list loads. */
export function violatedIn(run: string, layers: readonly string[]): Violated | null {
  // The list is asked for only where the overview knows of any.
  if (!overviewOf(run).value?.header.violated_channels) return null;
  const { value: answer } = violationsOf(run);
  if (!answer) return null;
  const audit = audits.get(answer) ?? byLayer(answer.violations);
  audits.set(answer, audit);
  const found = auditOf(audit, layers);
  return found && { channels: found.channels, firstStep: found.first.first_step, first: found.first };
}
