/** The exact figures of a run at a step, from the block of records that holds it. */

import { type Figures, figuresIn, type RecordBlock } from "../data/record";
import { lastAtOrBefore } from "../data/steps";
import { BLOCK, blockOf } from "./answers";
import type { Resource } from "./resource";
import type { Run } from "./runs";

/** The block whose records are in force at a step; null before the first record, which the index knows. */
export function blockAt(run: Run, step: number, th?: number): Resource<RecordBlock> | null {
  const record = lastAtOrBefore(run.recordSteps, step);
  return record < 0 ? null : blockOf(run, Math.floor(record / BLOCK), th);
}

/**
 * The figures of some layers of a run: of each its newest record at or before the step.
 *
 * @returns null while they load, before the first record, and where the run has none of the layers.
 */
export function figuresAt(run: Run, layers: readonly string[], step: number, th?: number): Figures | null {
  const block = blockAt(run, step, th)?.value;
  return block ? figuresIn(block, layers, step) : null;
}

/** The blocks that the figures of runs at a step are in: pictures of figures depend on them. */
export const blocksAt = (runs: readonly Run[], step: number): (RecordBlock | null)[] =>
  runs.map((run) => blockAt(run, step)?.value ?? null);

/** The same as if no channel were ever quiet: means count the smallest movements, too. */
export const withoutQuietAt = (run: Run, layers: readonly string[], step: number): Figures | null =>
  figuresAt(run, layers, step, 0);

/** When the record in force was written, in seconds since 1970; NaN where that isn't known. */
export function wallTimeAt(run: Run, step: number): number {
  const block = blockAt(run, step)?.value;
  return block?.wallTimes[lastAtOrBefore(block.steps, step)] ?? Number.NaN;
}

/** Whether the figures at a step are still to come. */
export function awaited(run: Run, step: number): boolean {
  const block = blockAt(run, step);
  return block !== null && !block.value && !block.error;
}

/** The step of the run's record that is in force at a place of the axis; before the first one a whole step. */
export function recordStep(run: Run, step: number): number {
  const record = lastAtOrBefore(run.recordSteps, step);
  return record < 0 ? Math.floor(step) : run.recordSteps[record];
}
