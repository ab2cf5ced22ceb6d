/** Names cut to a given room. No two look the same: what tells them apart stays. */

import { shortNames } from "./names";

/** A hyphen or a point after a digit belongs to a number, such as 1e-2. */
const SEPARATOR = /[/_]|(?<![0-9e])-|(?<!\d)\./;

type Names = readonly string[];

/** Whether a list repeats nothing. */
const distinct = (texts: Names): boolean => new Set(texts).size === texts.length;

/** Whether labels of names can be seen, as far as the names can. */
const seen = (labels: Names, names: Names): boolean =>
  labels.every((label, i) => label.trim() !== "" || names[i].trim() === "");

function sharedBeginning(words: Names): string {
  let length = 0;
  while (length < words[0].length && words.every((word) => word[length] === words[0][length])) length++;
  return words[0].slice(0, length);
}

/** Words without the key that all share: "lr=1e-1" as "1e-1", "seed0" as "0". */
function withoutKey(words: Names): string[] {
  const key = /^(?:.*[=:]|[a-z]+(?=\d|$))/i.exec(sharedBeginning(words))?.[0] ?? "";
  return words.map((word) => word.slice(key.length) || word);
}

/** Words of letters as the fewest that tell them apart; numbers stay. */
function abbreviated(words: Names): string[] {
  const all = [...new Set(words)];
  const shortest = (word: string): string => {
    let length = 1;
    while (length < word.length && all.some((other) => other !== word && other.startsWith(word.slice(0, length))))
      length++;
    return word.slice(0, length);
  };
  return words.map((word) => (/^[a-z]/i.test(word) ? shortest(word) : word));
}

/** Whether each word of a column stands for one word of another, and the other way round. */
function saysTheSame(column: Names, other: Names): boolean {
  const pairs = new Set(column.map((word, i) => `${word}\n${other[i]}`)).size;
  return pairs === new Set(column).size && pairs === new Set(other).size;
}

/** The columns of words in which names of one form differ; null where their forms differ. */
function columnsOf(names: Names): string[][] | null {
  const all = names.map((name) => name.split(SEPARATOR));
  if (names.length < 2 || all.some((words) => words.length !== all[0].length)) return null;
  const columns = all[0].map((_, place) => all.map((words) => words[place]));
  const varied = columns.filter((column) => column.some((word) => word !== column[0]));
  return varied.filter((column, i) => !varied.slice(0, i).some((earlier) => saysTheSame(column, earlier)));
}

/** Of each name its last word, and as many of the others as tell it apart. */
function distinctive(names: Names): string[] {
  const all = names.map((name) => name.split("/"));
  const kept = all.map((words) => new Set([words.length - 1]));
  const text = (i: number) =>
    [...kept[i]]
      .sort((a, b) => a - b)
      .reduce((said, at, n, places) => {
        const between = n === 0 ? "" : places[n - 1] === at - 1 ? "/" : "…";
        return said + between + all[i][at];
      }, "");
  for (let round = 0; round < 32; round++) {
    const groups = new Map<string, number[]>();
    for (const i of names.keys()) groups.set(text(i), [...(groups.get(text(i)) ?? []), i]);
    const same = [...groups.values()].filter((group) => group.length > 1);
    if (same.length === 0) break;
    for (const group of same) addWord(group, all, kept);
  }
  const texts = names.map((_, i) => text(i));
  // A last word that others have too may be of no use by now.
  return texts.map((own) => {
    const without = own.replace(/[/…][^/…]+$/, "");
    return texts.some((other) => other !== own && other.startsWith(without)) ? own : without;
  });
}

/** Keeps of each name the last of its words, counted from the end, in which not all of them agree. */
function addWord(group: readonly number[], all: readonly Names[], kept: readonly Set<number>[]): void {
  const longest = Math.max(...group.map((i) => all[i].length));
  for (let back = 2; back <= longest; back++) {
    const words = group.map((i) => all[i][all[i].length - back]);
    if (words.every((word) => word === words[0])) continue;
    const fresh = group.filter((i) => all[i].length >= back && !kept[i].has(all[i].length - back));
    if (fresh.length === 0) continue;
    for (const i of fresh) kept[i].add(all[i].length - back);
    return;
  }
}

/** The fewest letters at the beginning or the end of a word by which it differs from others. */
function initial(word: string, all: Names): string {
  const others = all.filter((other) => other !== word);
  for (let length = 1; length < word.length; length++) {
    const [begin, end] = [word.slice(0, length), word.slice(-length)];
    if (!others.some((other) => other.startsWith(begin))) return begin;
    if (!others.some((other) => other.endsWith(end))) return end;
  }
  return word;
}

/** Paths with their words as the fewest letters that tell them apart. */
function initials(paths: Names): string[] {
  const words = [...new Set(paths.flatMap((path) => path.split(/[/…]/)))];
  const short = new Map(words.map((word) => [word, initial(word, words)]));
  return paths.map((path) => path.replace(/[^/…]+/g, (word) => short.get(word) ?? word));
}

/** Labels from the longest to the shortest; in each no two are the same. */
function levelsOf(names: Names, whole: boolean): string[][] {
  const short = shortNames(names);
  const levels = [...(whole ? [[...names]] : []), names.map((name) => short.get(name) ?? name)];
  const columns = columnsOf(names);
  if (columns && columns.length > 0) {
    const joined = (list: string[][], by: string) => names.map((_, i) => list.map((column) => column[i]).join(by));
    const bare = columns.map(withoutKey);
    levels.push(joined(columns, "…"), joined(bare, " "), joined(bare.map(abbreviated), " "));
  } else levels.push(distinctive(names));
  const told = levels.filter((labels) => distinct(labels) && seen(labels, names));
  return told.length > 0 ? told : [[...names]];
}

type Width = (text: string) => number;

/** A text with its middle left out. */
function elided(text: string, room: number, share: number, widthOf: Width): string {
  const letters = [...text];
  if (widthOf(text) <= room) return text;
  let [fits, beyond] = [0, letters.length];
  const cut = (count: number) => {
    const head = Math.round(count * share);
    return `${letters.slice(0, head).join("")}…${letters.slice(letters.length - (count - head)).join("")}`;
  };
  while (beyond - fits > 1) {
    const middle = (fits + beyond) >> 1;
    if (widthOf(cut(middle)) <= room) fits = middle;
    else beyond = middle;
  }
  return cut(Math.max(1, fits));
}

/** Parts of the room that a beginning may take, in the order in which they are tried. */
const SHARES = [0.4, 0.6, 0.2, 0.8, 0, 1];

/** Labels cut in their middle; null where no part of them tells all apart. */
function cutAll(labels: Names, room: number, widthOf: Width): string[] | null {
  for (const share of SHARES) {
    const cut = labels.map((label) => elided(label, room, share, widthOf));
    if (distinct(cut)) return cut;
  }
  return null;
}

/**
 * Labels that are cut where they begin as another one does, of which so many letters stay at least; the others in their
 * middle; null where that doesn't fit.
 */
function cutShared(labels: Names, room: number, least: number, widthOf: Width): string[] | null {
  const cut = labels.map((label) => {
    if (widthOf(label) <= room) return label;
    const others = labels.filter((other) => other !== label);
    const shared = Math.max(0, ...others.map((other) => sharedBeginning([label, other]).length));
    for (let head = shared - 2; head >= least; head--) {
      const text = `${label.slice(0, head)}…${label.slice(shared)}`;
      if (widthOf(text) <= room) return text;
    }
    return shared > 0 ? "" : elided(label, room, 0.6, widthOf);
  });
  return cut.every((text) => text !== "" && widthOf(text) <= room) && distinct(cut) ? cut : null;
}

/** Labels that are cut and numbered. */
const numbered = (labels: Names, room: number, widthOf: Width): string[] =>
  labels.map((label, i) => {
    const number = `…${i + 1}`;
    return widthOf(label) <= room
      ? label
      : `${elided(label, room - widthOf(number), 1, widthOf).slice(0, -1)}${number}`;
  });

/** Cut to fewer letters than these, a word is less legible than its initials. */
const LEGIBLE = "legible";

/** Of each name its label in a room, in pixels. */
export type Labels = (room: number) => ReadonlyMap<string, string>;

/**
 * Labels of names that are shown together.
 *
 * @param names each once.
 * @param whole whether words that all share are shown where there is room.
 */
export function labelsOf(names: Names, widthOf: Width, whole = true): Labels {
  const levels = levelsOf(names, whole);
  const oneWord = columnsOf(names)?.length === 1;
  const widths = levels.map((labels) => Math.max(0, ...labels.map(widthOf)));
  const shorter = (last: Names, room: number): string[] => {
    const cut = cutAll(last, room, widthOf);
    if (cut && room >= widthOf(LEGIBLE)) return cut;
    const few = initials(last);
    const fits = distinct(few) && few.every((label) => widthOf(label) <= room);
    return fits ? few : (cut ?? numbered(last, room, widthOf));
  };
  const made = new Map<number, ReadonlyMap<string, string>>();
  return (room) => {
    const level = widths.findIndex((width) => width <= room);
    // Names of one word can be cut by what they share, which says more than their first letters.
    const cuts = oneWord && level !== 0;
    const key = level >= 0 && !cuts ? -level - 1 : Math.floor(room);
    const labels = () =>
      (cuts && cutShared(levels[0], Math.floor(room), level < 0 ? 0 : 1, widthOf)) ||
      (level >= 0 ? levels[level] : shorter(levels[levels.length - 1] ?? [], Math.floor(room)));
    let found = made.get(key);
    if (!found) {
      const list = labels();
      found = new Map(names.map((name, i) => [name, list[i]]));
      made.set(key, found);
    }
    return found;
  };
}
