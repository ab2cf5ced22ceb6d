/** The steps of records: the place of a step among them, and the end of their axis. */

/** Evenly spaced steps: the first one, how far they are apart, how many there are. */
export type Stretch = readonly [first: number, stride: number, count: number];

export function expand(stretches: readonly Stretch[]): Float64Array {
  const steps = new Float64Array(stretches.reduce((sum, [, , count]) => sum + count, 0));
  let next = 0;
  for (const [first, stride, count] of stretches) for (let i = 0; i < count; i++) steps[next++] = first + i * stride;
  return steps;
}

/** The index of the last value that is not above `step`, or -1; `steps` rises. */
export function lastAtOrBefore(steps: ArrayLike<number>, step: number): number {
  let low = 0;
  let high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle] <= step) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The end of the axis after the last column: a single record is one step wide. */
export function axisEnd(starts: ArrayLike<number>, ends: ArrayLike<number>): number {
  const k = starts.length;
  if (k === 0) return 0;
  return ends[k - 1] + Math.max(1, k > 1 ? starts[k - 1] - ends[k - 2] : 1);
}

/** All steps of some lists, each once, rising. */
export const mergeSteps = (lists: readonly ArrayLike<number>[]): Float64Array =>
  Float64Array.from(new Set(lists.flatMap((list) => Array.from(list)))).sort();
