/** The shapes of the HTTP answers, schema 2. Field names are the server's. */

export const SCHEMA = 2;

export interface Account {
  offered: number;
  shown: number;
  superseded: number;
  thinned: number;
  dropped: number;
  unreadable: number;
}

/** What recording cost, in seconds and bytes; `training` is from the first step seen to the last. */
export interface Overhead {
  training: number;
  /** Of these, what training waited for. */
  seconds: number;
  bytes: number;
}

export interface Note {
  text: string;
  count: number;
}

export interface RunInfo {
  name: string;
  tb_runs: string[];
  network: number;
  /** Empty or null where a user's own writer leaves them unknown, as the next two. */
  origin: string | null;
  past: string | null;
  every: number | null;
  first_step: number | null;
  last_step: number | null;
  records: number;
  /** The steps of all its records: first, stride and count of each stretch. */
  steps: [number, number, number][];
  closed: boolean;
  wall_time: [number, number] | null;
  lineages: { id: string; ordinal: number; first_step: number | null; last_step: number | null; closed: boolean }[];
  account: Account;
  /** null where the log doesn't tell. */
  overhead: Overhead | null;
  notes: Note[];
  skipped: { name: string; reason: string }[];
  source: "sink" | "summary";
  /** Whether it recorded how far its outputs moved: the route `function` tells. */
  probe: boolean;
}

export interface VariableInfo {
  id: string;
  role: string;
  shape: number[];
  axis: string;
  verified: boolean;
  channels: number;
}

export interface LayerInfo {
  id: string;
  group: string;
  name: string;
  type: string;
  variable: string;
  role: string;
  shape: number[];
  axis: string;
  verified: boolean;
  channels: number;
  weights: number;
  variables: VariableInfo[];
}

export interface IndexAnswer {
  schema: number;
  threshold: number;
  patience: number;
  runs: RunInfo[];
  networks: { layers: LayerInfo[] }[];
  other_runs: number;
  warnings: string[];
}

export interface OverviewHeader {
  schema: number;
  run: string;
  threshold: number;
  patience: number;
  past: string;
  layers: string[];
  /** By layer, as the next two. */
  channels: number[];
  /** Weights that can be pruned. */
  prunable: number[];
  accounts: Account[];
  notes: Note[];
  /** Channels of all variables that were violated, also of those that no layer is drawn by. */
  violated_channels: number;
  /** Whether any weight was pruned at any time. */
  sparse: boolean;
  /** How many relative deltas of channels that train lie where, between two powers of ten. */
  deltas: { from: number; to: number; counts: number[] };
}

export interface RecordsHeader {
  schema: number;
  run: string;
  threshold: number;
  patience: number;
  past: string;
  layers: string[];
  channels: number[];
  prunable: number[];
}

/** A sentence about a run or about some, and where the picture is that shows it. */
/** What matters most first. */
export const FINDING_KINDS: readonly string[] = [
  "violations",
  "nonfinite",
  "stalled",
  "unreadable",
  "dropped",
  "silent",
  "frozen",
  "pruned",
  "settled",
  "freezes_first",
  "moves_most",
];

export interface Finding {
  kind: string;
  /** null where runs are compared. */
  run: string | null;
  layers: string[];
  step: number | null;
  channels: number | null;
  value: number | null;
  text: string;
  link: { view: string; run: string | null; layer: string | null; channel: number | null; step: number | null };
}

export interface FindingsAnswer {
  schema: number;
  threshold: number;
  findings: Finding[];
}

/** What happened to a layer; `text` says it whole. */
export type LayerEvent = { step: number; text: string } & (
  | { kind: "learning_rate"; from: number; to: number }
  /** By the log of mask changes: weights that the mask lets through. */
  | { kind: "kept" | "trainable"; through: number; elements: number }
  /** As the records show it. */
  | { kind: "kept" | "trainable"; frozen: number; pruned: number; channels: number }
  | { kind: "restart" }
);

export interface LayerHeader {
  schema: number;
  run: string;
  layer: string;
  variable: string;
  role: string;
  shape: number[];
  axis: string;
  verified: boolean;
  channels: number;
  /** of one channel */
  elements: number;
  threshold: number;
  patience: number;
  past: string;
  account: Account;
  events: LayerEvent[];
  /** Names of the columns that `since` left out, and of all up to the last one. */
  before?: string;
  digest?: string;
}

/** A channel whose held weights changed. */
export interface Violation {
  layer: string;
  variable: string;
  channel: number;
  first_step: number;
  last_step: number;
  /** Held weights that differ from what they were held at, of those that are held; null where only a mark was recorded. */
  elements: number | null;
  held: number | null;
  /** Largest |w − held value|; null where it isn't finite. */
  largest: number | null;
  cause: string;
  text: string;
}

export interface ViolationsAnswer {
  schema: number;
  run: string;
  /** Of the run; not all of them are listed where there are very many. */
  total: number;
  violations: Violation[];
}

type Numbers = (number | null)[];

export interface ChannelAnswer {
  schema: number;
  run: string;
  layer: string;
  variable: string;
  channel: number;
  precision: number;
  steps: number[];
  past_steps: number[];
  state: string[];
  violated: boolean[];
  relative_delta: Numbers;
  norm: Numbers;
  past_norm: Numbers;
  delta_norm: Numbers;
  delta_max: Numbers;
  changed: Numbers;
  nonfinite: Numbers;
  kept: Numbers;
  trainable: Numbers;
  changes: { step: number; from: string; to: string }[];
  violations?: Violation[];
}

/** A run's part in an overlap. */
export interface OverlapRun {
  name: string;
  /** Of the record in force; null where the run has none at that step. */
  step: number | null;
  origin: string | null;
  /** Surviving weights or channels; null where that isn't known. */
  kept: number | null;
  elements: number;
}

export interface OverlapPair {
  /** Places in `runs`. */
  a: number;
  b: number;
  comparable: boolean;
  reason: "origin" | "layers" | "unknown" | "no record" | null;
  /** Intersection over union, and its value for two random sets of the same sizes. */
  overlap: number | null;
  chance: number | null;
  intersection: number | null;
  union: number | null;
  /** Layers that were matched, and those that only one has or that differ in shape. */
  layers: number;
  unmatched: number;
}

export interface OverlapAnswer {
  schema: number;
  step: number;
  unit: "weights" | "channels";
  mask: "kept" | "trainable";
  layer: string | null;
  runs: OverlapRun[];
  pairs: OverlapPair[];
  notes: Note[];
}

export interface OverlapLayersHeader {
  schema: number;
  run: string;
  other: string;
  unit: "weights" | "channels";
  mask: "kept" | "trainable";
  comparable: boolean;
  reason: OverlapPair["reason"];
  /** Steps of the records that were compared, where a step was asked for. */
  at: [number | null, number | null] | null;
  /** Those that both have, in the order of `run`. */
  layers: string[];
  elements: number[];
  unmatched: string[];
  notes: Note[];
}

/** What the probe measured: the output of a layer, or of the network. */
export interface FunctionPlace {
  /** "layer", whose name is its id, or "output"; later versions may know others. */
  kind: string;
  name: string;
  elements: number;
}

export interface FunctionHeader {
  schema: number;
  run: string;
  /** The batch of the last record; batches of one digest hold the same values, it is empty where it isn't known. */
  probe: { name: string; shape: number[]; dtype: string; digest: string }[];
  /** Steps of records made on another batch than the record before. */
  changed: number[];
  places: FunctionPlace[];
  /** In the order of `values`: relative, cosine, divergence, decisions. */
  measures: string[];
  past: string | null;
  notes: Note[];
}
