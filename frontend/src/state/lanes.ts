/** The numbers of lanes: the learning rate and a scalar of a run at a step. */

import { DASH } from "../data/absent";
import { formatNumber } from "../data/format";
import { scalarAt } from "../data/scalars";
import { lastAtOrBefore } from "../data/steps";
import { scalarsOf } from "./answers";
import { blockAt } from "./at";
import { insteadText } from "./resource";
import type { Run } from "./runs";

/** The learning rate of the record in force at a step, in words. */
export function rateText(run: Run, step: number): string {
  const answer = blockAt(run, step);
  const block = answer?.value;
  if (!block) return insteadText(answer, DASH);
  const rate = block.learningRates[lastAtOrBefore(block.steps, step)];
  return Number.isFinite(rate) ? formatNumber(rate) : DASH;
}

/** The nearest earlier value of the scalar, and its own step where that is another. */
export function scalarText(run: Run, step: number): { value: string; own: string } {
  const answer = scalarsOf(run.name);
  if (!answer.value) return { value: insteadText(answer, DASH), own: "" };
  return scalarAt(answer.value, step) ?? { value: DASH, own: "" };
}
