/** Names of runs and layers: filtered and grouped by patterns, cut to the part that tells them apart. */

export interface Filter {
  text: string;
  /** null lets everything through */
  pattern: RegExp | null;
  valid: boolean;
}

export const NO_FILTER: Filter = { text: "", pattern: null, valid: true };

export const passes = ({ pattern }: Filter, name: string): boolean => !pattern || pattern.test(name);

export function applyFilter(text: string, last: Filter): Filter {
  if (text === "") return NO_FILTER;
  try {
    return { text, pattern: new RegExp(text, "i"), valid: true };
  } catch {
    return { text, pattern: last.pattern, valid: false };
  }
}

/** The group of a run: what the pattern's first parentheses hold, else the name without the match; null without one. */
export function groupName(name: string, pattern: RegExp): string | null {
  const match = pattern.exec(name);
  return match && (match[1] ?? name.slice(0, match.index) + name.slice(match.index + match[0].length));
}

/** A hyphen or a point after a digit belongs to a number, such as 1e-2. */
const SEPARATOR = /([/_]|(?<![0-9e])-|(?<!\d)\.)/;

/** A name as words alternating with the separators between them. */
const partsOf = (name: string): string[] => name.split(SEPARATOR);

/**
 * Of each name the words that aren't the same in all of them; "…" stands for those left out in between. Names of other
 * forms lose only what all begin and end with.
 */
export function shortNames(names: readonly string[]): Map<string, string> {
  const all = names.map(partsOf);
  if (names.length < 2) return new Map(names.map((name) => [name, name]));
  const most = Math.min(...all.map((parts) => parts.length));
  const same = (place: (parts: string[]) => string) => all.every((parts) => place(parts) === place(all[0]));
  let start = 0;
  while (start + 2 < most && same((parts) => parts[start])) start += 2;
  let end = 0;
  while (start + end + 2 < most && same((parts) => parts[parts.length - 1 - end])) end += 2;
  const aligned = all.every((parts) => parts.length === all[0].length);
  const short = (parts: string[]): string => {
    const inner = parts.slice(start, parts.length - end);
    if (!aligned) return inner.join("");
    const kept = inner.map((part, i) => (i % 2 === 1 || !same((other) => other[start + i]) ? part : "…"));
    return kept.join("").replaceAll(/[/_\-.]*…[/_\-.…]*/g, "…");
  };
  return new Map(names.map((name, i) => [name, short(all[i]) || name]));
}

// Hebrew, Arabic and their presentation forms; as scripts by name the pattern takes 20 ms to compile.
const RIGHT_TO_LEFT = /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\ufb1d-\ufdff\ufe70-\ufeff]/;

export const isRightToLeft = (text: string): boolean => RIGHT_TO_LEFT.test(text);

/** A name inside of a text: the letters around one that is written from right to left keep their order. */
export const isolated = (name: string): string => (isRightToLeft(name) ? `\u2068${name}\u2069` : name);

/** The last words of a name. */
const ENDING = new RegExp(`(?<=…|${SEPARATOR.source}).{1,10}$`);

/** A name in two parts, of which the first may be cut; in one where it isn't known which is first. */
export function beginningAndEnd(name: string): string[] {
  const ending = name.search(ENDING);
  const cut = ending < 0 ? name.length - 6 : ending;
  return cut <= 0 || isRightToLeft(name) ? [name] : [name.slice(0, cut), name.slice(cut)];
}
