/** The overview of one run: a series per layer, and sums over groups on demand. */

import { type Container, numbers, type Section, section } from "../wire/container";
import type { Account, Note, OverviewHeader } from "../wire/types";
import { addSeries, axisEnd, type Series } from "./series";
import { STATES } from "./states";

export interface Overview {
  run: string;
  threshold: number;
  patience: number;
  past: string;
  layers: string[];
  accounts: Map<string, Account>;
  notes: Note[];
  /** By layer; views into the answer, made when asked for. */
  series: { get(layer: string): Series | undefined };
  /** Of all layers together; null where the server doesn't tell. */
  total: Series | null;
  starts: Float64Array;
  ends: Float64Array;
  end: number;
  learningRates: Float32Array;
  wallTimes: Float64Array;
  /** Channels of all variables that the audit found violated, also of those that no layer is drawn by. */
  violatedChannels: number;
  /** Whether any weight was pruned at any time. */
  sparse: boolean;
}

type Axis = Pick<Series, "starts" | "ends" | "end">;

/** Reads some columns of layers, or with a prefix those of all layers together. */
function readSeries(
  container: Container<OverviewHeader>,
  axis: Axis,
  prefix: string,
  l: number,
  prunable: number,
): Series {
  const k = axis.starts.length;
  const part = <S extends Uint32Array | Float64Array>(name: string, Kind: new (values: Section) => S, each = 1): S =>
    numbers(container, prefix + name, Kind, l * k * each, (l + 1) * k * each);
  const counts = part("counts", Uint32Array, STATES);
  return {
    ...axis,
    counts,
    violated: part("violated", Uint32Array),
    nonfinite: part("nonfinite", Uint32Array),
    meanDelta: section(container, `${prefix}mean_delta`, Float32Array).subarray(l * k, (l + 1) * k),
    channels: counts.subarray(0, STATES).reduce((sum, count) => sum + count, 0),
    pruned: container.sections.has("pruned") ? part("pruned", Float64Array) : null,
    prunable,
  };
}

export function readOverview(container: Container<OverviewHeader>): Overview {
  const { header } = container;
  const starts = section(container, "first_steps", Float64Array);
  const ends = section(container, "steps", Float64Array);
  const axis = { starts, ends, end: axisEnd(starts, ends) };
  const places = new Map(header.layers.map((layer, l) => [layer, l]));
  const prunable = header.prunable ?? [];
  const made: (Series | undefined)[] = [];
  // 300 layers of 20 runs are many objects, few of which are ever drawn.
  const series = {
    get(layer: string): Series | undefined {
      const l = places.get(layer);
      if (l === undefined) return undefined;
      made[l] ??= readSeries(container, axis, "", l, prunable[l] ?? 0);
      return made[l];
    },
  };
  return {
    run: header.run,
    threshold: header.threshold,
    patience: header.patience,
    past: header.past,
    layers: header.layers,
    accounts: new Map(header.layers.map((layer, l) => [layer, header.accounts[l]])),
    notes: header.notes,
    violatedChannels: header.violated_channels ?? 0,
    series,
    total: container.sections.has("total_counts")
      ? readSeries(
          container,
          axis,
          "total_",
          0,
          prunable.reduce((sum, count) => sum + count, 0),
        )
      : null,
    ...axis,
    learningRates: section(container, "learning_rates", Float32Array),
    wallTimes: section(container, "wall_times", Float64Array),
    sparse: container.sections.get("pruned")?.some((count) => count > 0) ?? false,
  };
}

const sums = new WeakMap<Overview, WeakMap<readonly string[], { sum: Series | null }>>();

/** The sum over those of `layers` that the run has, or null where it has none; kept per overview and list. */
export function sumOf(overview: Overview, layers: readonly string[]): Series | null {
  if (layers.length === 1) return overview.series.get(layers[0]) ?? null;
  const kept = sums.get(overview) ?? new WeakMap<readonly string[], { sum: Series | null }>();
  sums.set(overview, kept);
  let found = kept.get(layers);
  if (!found) {
    const own = layers.filter((layer) => overview.accounts.has(layer));
    if (overview.total && own.length === overview.layers.length) found = { sum: overview.total };
    else found = { sum: own.length > 0 ? addSeries(own.map((layer) => overview.series.get(layer)!)) : null };
    kept.set(layers, found);
  }
  return found.sum;
}
