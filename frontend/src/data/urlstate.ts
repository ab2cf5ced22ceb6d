/** The state of the page that lives in the URL, and its short text form with defaults left out. */

import { ORDERS, type Order } from "./sort";

export const MODES = ["state", "both", "delta"] as const;
export type Mode = (typeof MODES)[number];
export const MEASURES = [
  "moving",
  "settled",
  "frozen",
  "pruned",
  "reactivated",
  "violated",
  "sparsity",
  "delta",
] as const;
export type Measure = (typeof MEASURES)[number];

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

export interface PageState {
  view: ViewName;
  layer: string | null;
  run: string | null;
  variable: string | null;
  channel: number | null;
  /** null stays at the last step that most runs have */
  step: number | null;
  /** null is the server's default */
  threshold: number | null;
  mode: Mode;
  order: Order;
  measure: Measure;
  hidden: string[];
  /** Groups that were closed, or opened where many layers are closed at first. */
  closed: string[];
  runFilter: string;
  layerFilter: string;
  /** A pattern: runs that differ in their seed alone are one group. */
  grouping: string;
  /** Whether layers are sorted by the measure. */
  sorted: boolean;
  zoom: [number, number] | null;
  /** The run whose violations are listed. */
  audit: string | null;
  /** The run that the others are compared with. */
  baseline: string | null;
  /** Whether the pictures show the difference to the baseline. */
  versus: boolean;
  /** Run B of the Compare view; A is `run`. */
  other: string | null;
  /** null leaves the choice to the data */
  unit: Unit | null;
  maskKind: MaskKind;
  /** The run that the heatmap takes the order of its rows from; null is its own. */
  rowsOf: string | null;
  /** Channels of the layer that stay in the inspector. */
  pins: number[];
  /** Range [from, to) of the rows drawn, by their order. */
  rowZoom: [number, number] | null;
  /** Selected place of the Function view. */
  place: string | null;
  change: Change;
}

export const DEFAULTS: PageState = {
  view: VIEW_NAMES[0],
  layer: null,
  run: null,
  variable: null,
  channel: null,
  step: null,
  threshold: null,
  mode: "both",
  order: "moved",
  measure: "moving",
  hidden: [],
  closed: [],
  runFilter: "",
  layerFilter: "",
  grouping: "",
  sorted: false,
  zoom: null,
  audit: null,
  baseline: null,
  versus: false,
  other: null,
  unit: null,
  maskKind: "kept",
  rowsOf: null,
  pins: [],
  rowZoom: null,
  place: null,
  change: "relative",
};

/** A change of the state. What belongs to a layer, a variable or an order of rows goes with it. */
export function patched(state: PageState, patch: Partial<PageState>): PageState {
  const next = { ...state, ...patch };
  const moved = (key: keyof PageState) => state[key] !== next[key];
  const elsewhere = moved("layer") || moved("variable");
  if (elsewhere && !patch.pins) next.pins = [];
  if ((elsewhere || moved("order") || moved("rowsOf")) && !patch.rowZoom) next.rowZoom = null;
  return next;
}

const list = (names: string[]): string => names.map(encodeURIComponent).join(",");

function unlist(text: string | undefined): string[] {
  if (!text) return [];
  try {
    return text.split(",").map(decodeURIComponent);
  } catch {
    return [];
  }
}

/** The pairs to write, without those that have their default. */
export function toPairs(state: PageState): Map<string, string> {
  const pairs = new Map<string, string>();
  const put = (key: string, value: string | number | null, unless: string | null = null) => {
    if (value !== null && value !== "" && String(value) !== unless) pairs.set(key, String(value));
  };
  put("v", state.view, DEFAULTS.view);
  put("l", state.layer);
  put("r", state.run);
  put("w", state.variable);
  put("c", state.channel);
  put("s", state.step);
  put("th", state.threshold);
  put("m", state.mode, DEFAULTS.mode);
  put("o", state.order, DEFAULTS.order);
  put("d", state.measure, DEFAULTS.measure);
  put("x", list(state.hidden));
  put("g", list(state.closed));
  put("fr", state.runFilter);
  put("fl", state.layerFilter);
  put("gr", state.grouping);
  put("so", state.sorted ? 1 : null);
  put("z", state.zoom ? state.zoom.join("~") : null);
  put("a", state.audit);
  put("b", state.baseline);
  put("vs", state.versus ? 1 : null);
  put("r2", state.other);
  put("u", state.unit);
  put("mk", state.maskKind, DEFAULTS.maskKind);
  put("of", state.rowsOf);
  put("p", state.pins.join("~"));
  put("zr", state.rowZoom ? state.rowZoom.join("~") : null);
  put("pl", state.place);
  put("fm", state.change, DEFAULTS.change);
  return pairs;
}

const oneOf = <T extends string>(allowed: readonly T[], text: string | undefined, fallback: T): T =>
  allowed.find((value) => value === text) ?? fallback;

function finite(text: string | undefined, low: number, high = Number.MAX_SAFE_INTEGER): number | null {
  if (text === undefined || text.trim() === "") return null;
  const value = Number(text);
  return Number.isFinite(value) && value >= low && value <= high ? value : null;
}

function span(text: string | undefined): [number, number] | null {
  const [from, to] = (text ?? "").split("~").map((part) => finite(part, 0));
  return from != null && to != null && to > from ? [from, to] : null;
}

/** The state of a URL; whatever can't be read falls back to its default. */
export function fromPairs(pairs: ReadonlyMap<string, string>): PageState {
  const channel = finite(pairs.get("c"), 0);
  const pins = (pairs.get("p") ?? "").split("~").map((part) => finite(part, 0));
  return {
    view: oneOf(VIEW_NAMES, pairs.get("v"), DEFAULTS.view),
    layer: pairs.get("l") ?? null,
    run: pairs.get("r") ?? null,
    variable: pairs.get("w") ?? null,
    channel: channel === null ? null : Math.floor(channel),
    step: finite(pairs.get("s"), 0),
    threshold: finite(pairs.get("th"), 1e-12, 1),
    mode: oneOf(MODES, pairs.get("m"), DEFAULTS.mode),
    order: oneOf(ORDERS, pairs.get("o"), DEFAULTS.order),
    measure: oneOf(MEASURES, pairs.get("d"), DEFAULTS.measure),
    hidden: unlist(pairs.get("x")),
    closed: unlist(pairs.get("g")),
    runFilter: pairs.get("fr") ?? "",
    layerFilter: pairs.get("fl") ?? "",
    grouping: pairs.get("gr") ?? "",
    sorted: pairs.get("so") === "1",
    zoom: span(pairs.get("z")),
    audit: pairs.get("a") ?? null,
    baseline: pairs.get("b") ?? null,
    versus: pairs.get("vs") === "1",
    other: pairs.get("r2") ?? null,
    unit: UNITS.find((value) => value === pairs.get("u")) ?? null,
    maskKind: oneOf(MASK_KINDS, pairs.get("mk"), DEFAULTS.maskKind),
    rowsOf: pairs.get("of") ?? null,
    pins: pins.filter((pin) => pin !== null).map(Math.floor),
    rowZoom: span(pairs.get("zr")),
    place: pairs.get("pl") ?? null,
    change: oneOf(CHANGES, pairs.get("fm"), DEFAULTS.change),
  };
}
