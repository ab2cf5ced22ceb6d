/** The overview of one run: a series per layer, and sums over groups on demand. */

import { type Container, numbers, section } from "../wire/container";
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

export function readOverview(container: Container<OverviewHeader>): Overview {
  const { header } = container;
  const starts = section(container, "first_steps", Float64Array);
  const ends = section(container, "steps", Float64Array);
  const counts = numbers(container, "counts", Uint32Array);
  const violated = numbers(container, "violated", Uint32Array);
  const nonfinite = numbers(container, "nonfinite", Uint32Array);
  const meanDelta = section(container, "mean_delta", Float32Array);
  const pruned = container.sections.has("pruned") ? numbers(container, "pruned", Float64Array) : null;
  const k = starts.length;
  const end = axisEnd(starts, ends);
  const places = new Map(header.layers.map((layer, l) => [layer, l]));
  const made: (Series | undefined)[] = [];
  const make = (l: number): Series => {
    const own = counts.subarray(l * k * STATES, (l + 1) * k * STATES);
    return {
      starts,
      ends,
      end,
      counts: own,
      violated: violated.subarray(l * k, (l + 1) * k),
      nonfinite: nonfinite.subarray(l * k, (l + 1) * k),
      meanDelta: meanDelta.subarray(l * k, (l + 1) * k),
      channels: own.subarray(0, STATES).reduce((sum, count) => sum + count, 0),
      pruned: pruned?.subarray(l * k, (l + 1) * k) ?? null,
      prunable: header.prunable?.[l] ?? 0,
    };
  };
  // 300 layers of 20 runs are many objects, few of which are ever drawn.
  const series = {
    get(layer: string): Series | undefined {
      const l = places.get(layer);
      if (l === undefined) return undefined;
      made[l] ??= make(l);
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
    starts,
    ends,
    end,
    learningRates: section(container, "learning_rates", Float32Array),
    wallTimes: section(container, "wall_times", Float64Array),
    sparse: pruned?.some((count) => count > 0) ?? false,
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
    const { layers: all } = overview;
    if (layers !== all && layers.length === all.length && layers.every((layer, l) => layer === all[l])) {
      return sumOf(overview, all);
    }
    const parts = layers.map((layer) => overview.series.get(layer)).filter((part) => part !== undefined);
    found = { sum: parts.length > 0 ? addSeries(parts) : null };
    kept.set(layers, found);
  }
  return found.sum;
}
