/** What the page reads of the HTTP answers, schema 5. Field names are the server's. */

export const SCHEMA = 5;

export interface Answer {
  schema: number;
}

interface RunAnswer extends Answer {
  run: string;
}

/** Counts of records. */
export type Account = Record<"offered" | "shown" | "superseded" | "thinned" | "dropped" | "unreadable", number>;

/** Recording overhead, in seconds and bytes; `training` is from the first step seen to the last. */
export interface Overhead {
  training: number;
  /** Of these, what training waited for. */
  seconds: number;
  bytes: number;
  /** Bytes of past values, and of what held weights are compared with; 0 in earlier logs. */
  memory: number;
}

interface Note {
  text: string;
  count: number;
}

export interface RunInfo {
  name: string;
  tb_runs: string[];
  network: number;
  /** Empty or null where a user's own writer leaves it unknown, as the next. */
  origin: string | null;
  past: string | null;
  first_step: number | null;
  last_step: number | null;
  records: number;
  /** The steps of all its records: first, stride and count of each stretch. */
  steps: [number, number, number][];
  closed: boolean;
  wall_time: [number, number] | null;
  account: Account;
  /** What was frozen or pruned, and compared with its earlier values. */
  verified: { text: string; weights: number; values: number; changed: number };
  /** null if the log doesn't have it. */
  overhead: Overhead | null;
  notes: Note[];
  skipped: { name: string; reason: string }[];
  source: "sink" | "summary";
  /** Whether it recorded how far its outputs moved, see the route `function`. */
  probe: boolean;
  /** Whether it was recorded by what takes probe=: Keras on TensorFlow. */
  can_probe: boolean;
}

interface Shape {
  role: string;
  shape: number[];
  axis: string;
  verified: boolean;
  channels: number;
  /** Whether anything but an optimizer moves it on purpose. */
  follows: boolean;
}

export interface LayerInfo extends Shape {
  id: string;
  group: string;
  name: string;
  type: string;
  variable: string;
  weights: number;
  variables: (Shape & { id: string })[];
}

export interface IndexAnswer extends Answer {
  threshold: number;
  patience: number;
  runs: RunInfo[];
  networks: { layers: LayerInfo[] }[];
  other_runs: number;
  warnings: string[];
}

export interface RecordsHeader extends RunAnswer {
  /** Instead of all else: the run could not be read. */
  error?: { code: string; message: string };
  threshold: number;
  layers: string[];
  /** By layer, as the next. */
  channels: number[];
  /** Weights that can be pruned. */
  prunable: number[];
  /** Whether groups of weights have different learning rates. */
  several_rates?: boolean;
}

export interface OverviewHeader extends RecordsHeader {
  notes: Note[];
  /** Violated channels of all layers, whichever of their variables changed. */
  violated_channels: number;
  /** Whether any weight was pruned at any time. */
  sparse: boolean;
  /** A histogram of the relative deltas of training channels, between two powers of ten. */
  deltas: { from: number; to: number; counts: number[] };
}

/** Something that happened at a record, or at several records in a row. */
export interface LaneFlag {
  kind: string;
  first_step: number;
  last_step: number;
  /** Records at which it happened. */
  times: number;
  /** Channels, or weights that are pruned or no longer are. */
  amount: number;
}

/** A run as one lane: some layers together, or all. */
export interface LaneHeader extends RunAnswer {
  error?: { code: string; message: string };
  threshold: number;
  layers: number;
  channels: number;
  prunable: number;
  flags: LaneFlag[];
  several_rates?: boolean;
}

/** A scalar that the training logged by itself. */
export interface ScalarsHeader extends RunAnswer {
  /** Of all that the run has. */
  names: string[];
  /** The one that was read; null where there is none. */
  name: string | null;
  /** Whether its points are at their own steps, or placed by the times of the records around them. */
  placed: "step" | "time";
}

/** A sentence about some runs, and where the picture is that shows it. */
export interface Finding {
  kind: string;
  severity: "harm" | "change" | "fact";
  /** null where the kind has no causes. */
  cause: string | null;
  runs: string[];
  layers: string[];
  channels: number | null;
  first_step: number | null;
  numbers: Record<string, number>;
  text: string;
  link: {
    view: string;
    run: string;
    layer: string | null;
    channel: number | null;
    step: number | null;
    variable?: string;
  };
}

export interface FindingsAnswer extends Answer {
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

export interface LayerHeader extends RunAnswer, Shape {
  layer: string;
  variable: string;
  /** of one channel */
  elements: number;
  threshold: number;
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
  /** Held weights that differ from what they were held at, of those that are held; null: fingerprints don't show it. */
  elements: number | null;
  held: number;
  /** Largest |w − held value|; null where it isn't finite, or isn't known. */
  largest: number | null;
  cause: string;
  text: string;
}

export interface ViolationsAnswer extends RunAnswer {
  /** Of the run; not all of them are listed where there are very many. */
  total: number;
  violations: Violation[];
}

type Norms = "relative_delta" | "norm" | "past_norm" | "delta_norm" | "delta_max";
type Shares = "changed" | "nonfinite" | "kept" | "trainable" | "moved";

export interface ChannelAnswer extends RunAnswer, Record<Norms | Shares, (number | null)[]> {
  layer: string;
  variable: string;
  channel: number;
  precision: number;
  steps: number[];
  past_steps: number[];
  state: string[];
  violated: boolean[];
  changes: { step: number; from: string; to: string }[];
  violations?: Violation[];
}

/** A run's part in an overlap. */
export interface OverlapRun {
  name: string;
  /** Of the record in force; null where the run has none at that step. */
  step: number | null;
  /** Remaining weights or channels; null if that isn't known. */
  kept: number | null;
  elements: number;
}

interface Compared {
  comparable: boolean;
  reason: "origin" | "layers" | "unknown" | "no record" | null;
}

export interface OverlapPair extends Compared {
  /** Places in `runs`. */
  a: number;
  b: number;
  /** Intersection over union, and its value for two random sets of the same sizes. */
  overlap: number | null;
  chance: number | null;
  intersection: number | null;
  union: number | null;
  /** Layers that were matched, and those that only one has or that differ in shape. */
  layers: number;
  unmatched: number;
}

interface Counted extends Answer {
  unit: "weights" | "channels";
  mask: "kept" | "trainable";
  notes: Note[];
}

export interface OverlapAnswer extends Counted {
  step: number;
  layer: string | null;
  runs: OverlapRun[];
  pairs: OverlapPair[];
}

export interface OverlapLayersHeader extends Counted, Compared {
  run: string;
  other: string;
  /** Those that both have, in the order of `run`. */
  layers: string[];
  elements: number[];
}

/** What the probe measured: the output of a layer, or of the network. */
export interface FunctionPlace {
  /** "layer", whose name is its id, or "output"; later versions may know others. */
  kind: string;
  name: string;
  elements: number;
}

export interface FunctionHeader extends RunAnswer {
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
