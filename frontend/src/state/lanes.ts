/** The numbers of lanes: the learning rate and a scalar of a run at a step. */

import { DASH } from "../data/absent";
import { formatNumber } from "../data/format";
import { scalarAt } from "../data/scalars";
import { lastAtOrBefore } from "../data/steps";
import { scalarsOf } from "./answers";
import { blockAt } from "./at";
import { insteadText, type Resource } from "./resource";
import type { Run } from "./runs";

type Rates = { steps: Float64Array; learningRates: Float32Array };

/** What a learning rate is called that stands for a run. */
export const rateTitle = (several = false): string => `${several ? "highest " : ""}learning rate`;

/** The learning rate of the record in force at a step, in words. */
export function rateText(run: Run, step: number, answer: Resource<Rates> | null = blockAt(run, step)): string {
  const rates = answer?.value;
  if (!rates) return insteadText(answer, DASH);
  const rate = rates.learningRates[lastAtOrBefore(rates.steps, step)];
  return Number.isFinite(rate) ? formatNumber(rate) : DASH;
}

/** The nearest earlier value of the scalar, and its own step where that is another. */
export function scalarText(run: Run, step: number): { value: string; own: string } {
  const answer = scalarsOf(run.name);
  if (!answer.value) return { value: insteadText(answer, DASH), own: "" };
  return scalarAt(answer.value, step) ?? { value: DASH, own: "" };
}
