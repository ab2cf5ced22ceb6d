/** Regex filters: a wrong pattern is told, and the last valid one stays. */

export interface Filter {
  text: string;
  /** null lets everything through */
  pattern: RegExp | null;
  valid: boolean;
}

export const NO_FILTER: Filter = { text: "", pattern: null, valid: true };

export function applyFilter(text: string, last: Filter): Filter {
  if (text === "") return NO_FILTER;
  try {
    return { text, pattern: new RegExp(text, "i"), valid: true };
  } catch {
    return { text, pattern: last.pattern, valid: false };
  }
}
