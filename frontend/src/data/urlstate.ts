/** The state of the page that lives in the URL, and its short text form with defaults left out. */

import { ORDERS } from "./sort";

export const MODES = ["state", "both", "delta"] as const;
export type Mode = (typeof MODES)[number];
export const MEASURE_TITLES = {
  moving: "Still moving",
  quiet: "Quiet",
  frozen: "Frozen",
  pruned: "Pruned",
  reactivated: "Reactivated",
  violated: "Violated",
  sparsity: "Sparsity",
  delta: "Mean Δ of moving",
};
export type Measure = keyof typeof MEASURE_TITLES;
export const MEASURES = Object.keys(MEASURE_TITLES) as Measure[];

/** The first one is shown where none is named. */
export const VIEW_NAMES = ["findings", "network", "layer", "compare", "function"] as const;
export type ViewName = (typeof VIEW_NAMES)[number];
/** What overlaps: single weights by their masks, or channels by their state. */
export const UNITS = ["weights", "channels"] as const;
export type Unit = (typeof UNITS)[number];
export const MASK_KINDS = ["kept", "trainable"] as const;
export type MaskKind = (typeof MASK_KINDS)[number];
/** How far an output moved, as recorded. */
export const CHANGES = ["relative", "cosine", "divergence", "decisions"] as const;
export type Change = (typeof CHANGES)[number];

/** A field of the state: its key in the URL, and what it is where the URL doesn't have it or has what can't be read. */
interface Field<T> {
  key: string;
  initial: T;
  write(value: NonNullable<T>): string;
  /** null where the text can't be read. */
  read(text: string): T | null;
}

/** A field whose text needs nothing done. */
const plain = <T extends string | null>(key: string, initial: T): Field<T> => ({
  key,
  initial,
  write: (value) => value,
  read: (text) => text as T,
});
const name = (key: string) => plain<string | null>(key, null);
const pattern = (key: string) => plain<string>(key, "");

const choice = <T extends string>(key: string, words: readonly T[], initial = words[0]): Field<T> => ({
  ...plain<T>(key, initial),
  read: (text) => words.find((word) => word === text) ?? null,
});

const flag = (key: string): Field<boolean> => ({
  key,
  initial: false,
  write: (value) => (value ? "1" : ""),
  read: (text) => text === "1",
});

function finite(text: string, low: number, high = Number.MAX_SAFE_INTEGER): number | null {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  return Number.isFinite(value) && value >= low && value <= high ? value : null;
}

const number = (key: string, low = 0, high?: number): Field<number | null> => ({
  key,
  initial: null,
  write: String,
  read: (text) => finite(text, low, high),
});

const numbersIn = (text: string, low = 0) => text.split("~").map((part) => finite(part, low));
/** Channels are whole. */
const wholeIn = (text: string) => numbersIn(text).flatMap((part) => (part === null ? [] : Math.floor(part)));

/** Summaries may have been written at steps below 0. */
const LOWEST = Number.MIN_SAFE_INTEGER;

const span = (key: string, low?: number): Field<[number, number] | null> => ({
  key,
  initial: null,
  write: (value) => value.join("~"),
  read(text) {
    const [from, to] = numbersIn(text, low);
    return from != null && to != null && to > from ? [from, to] : null;
  },
});

const names = (key: string): Field<string[]> => ({
  key,
  initial: [],
  write: (value) => value.map(encodeURIComponent).join(","),
  read(text) {
    try {
      return text === "" ? [] : text.split(",").map(decodeURIComponent);
    } catch {
      return [];
    }
  },
});

const FIELDS = {
  view: choice("v", VIEW_NAMES),
  layer: name("l"),
  run: name("r"),
  variable: name("w"),
  channel: { ...number("c"), read: (text: string) => wholeIn(text)[0] ?? null },
  /** null stays at the last step that most runs have */
  step: number("s", LOWEST),
  /** null is the server's default */
  threshold: number("th", 1e-12, 1),
  mode: choice("m", MODES, "both"),
  order: choice("o", ORDERS),
  measure: choice("d", MEASURES),
  hidden: names("x"),
  /** Groups that were closed, or opened where many layers are closed at first. */
  closed: names("g"),
  runFilter: pattern("fr"),
  layerFilter: pattern("fl"),
  /** Runs that differ only in their seed are one group. */
  grouping: pattern("gr"),
  /** Whether layers are sorted by the measure. */
  sorted: flag("so"),
  zoom: span("z", LOWEST),
  /** The run whose violations are listed. */
  audit: name("a"),
  /** The run that the others are compared with. */
  baseline: name("b"),
  /** Whether the pictures show the difference to the baseline. */
  versus: flag("vs"),
  /** Run B of the Compare view; A is `run`. */
  other: name("r2"),
  /** null leaves the choice to the data */
  unit: { ...(choice("u", UNITS) as Field<Unit | null>), initial: null },
  maskKind: choice("mk", MASK_KINDS),
  /** The run that the heatmap takes the order of its rows from; null is its own. */
  rowsOf: name("of"),
  /** Channels of the layer that stay in the inspector. */
  pins: { ...names("p"), initial: [], write: (pins: number[]) => pins.join("~"), read: wholeIn },
  /** Range [from, to) of the rows drawn, by their order. */
  rowZoom: span("zr"),
  /** Selected place of the Function view. */
  place: name("pl"),
  change: choice("fm", CHANGES),
  /** The scalar that lanes show; null is the one that was chosen last, or the run's loss. */
  scalar: name("sc"),
};

export type PageState = { [K in keyof typeof FIELDS]: (typeof FIELDS)[K] extends Field<infer T> ? T : never };

const entries = Object.entries(FIELDS) as [keyof PageState, Field<unknown>][];

/** The state of a URL. */
export const fromPairs = (pairs: ReadonlyMap<string, string>): PageState =>
  Object.fromEntries(
    entries.map(([field, { key, initial, read }]) => {
      const text = pairs.get(key);
      return [field, (text === undefined ? null : read(text)) ?? initial];
    }),
  ) as unknown as PageState;

export const DEFAULTS = fromPairs(new Map());

/** The pairs to write, without those that have their default. */
export function toPairs(state: PageState): Map<string, string> {
  const pairs = new Map<string, string>();
  for (const [field, { key, initial, write }] of entries) {
    const value = state[field];
    if (value === null || value === initial) continue;
    const written = write(value);
    if (written !== "") pairs.set(key, written);
  }
  return pairs;
}

/** A change of the state. What belongs to a layer, a variable or an order of rows goes with it. */
export function patched(state: PageState, patch: Partial<PageState>): PageState {
  const next = { ...state, ...patch };
  const moved = (key: keyof PageState) => state[key] !== next[key];
  const elsewhere = moved("layer") || moved("variable");
  if (elsewhere && !patch.pins) next.pins = [];
  if ((elsewhere || moved("order") || moved("rowsOf")) && !patch.rowZoom) next.rowZoom = null;
  return next;
}
