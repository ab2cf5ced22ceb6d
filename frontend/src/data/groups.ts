/** Runs that differ in their seed alone: grouped by a pattern, with mean and spread. */

export interface Spread {
  mean: number;
  /** The sample standard deviation; NaN of a single value. */
  deviation: number;
  low: number;
  high: number;
  count: number;
}

/** The group of a run: what the pattern's first parentheses hold, else the name without the match; null without one. */
export function groupName(name: string, pattern: RegExp): string | null {
  const found = pattern.exec(name);
  if (!found) return null;
  return found[1] ?? name.slice(0, found.index) + name.slice(found.index + found[0].length);
}

/** Of the values that there are; null without any. */
export function spreadOf(values: readonly number[]): Spread | null {
  const known = values.filter((value) => !Number.isNaN(value));
  const count = known.length;
  if (count === 0) return null;
  const mean = known.reduce((sum, value) => sum + value, 0) / count;
  const squares = known.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return {
    mean,
    deviation: count > 1 ? Math.sqrt(squares / (count - 1)) : Number.NaN,
    low: Math.min(...known),
    high: Math.max(...known),
    count,
  };
}
