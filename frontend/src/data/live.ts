/** Whether a run goes on, as far as its records tell. */

import type { RunInfo } from "../server/types";
import { plural } from "./format";

/** A run goes on while its last record isn't older than this, or than some of its records are apart. */
const RECENT_SECONDS = 120;
const RECENT_RECORDS = 5;

/** "live", "silent" where no end was recorded and no record came for long, else "ended". */
export function livenessOf(run: RunInfo, now: number): "live" | "silent" | "ended" {
  const [first, last] = run.wall_time ?? [null, null];
  if (run.closed || last === null) return "ended";
  const apart = first === null || run.records < 2 ? 0 : (last - first) / (run.records - 1);
  if (now - last < Math.max(RECENT_SECONDS, RECENT_RECORDS * apart)) return "live";
  return run.source === "sink" ? "silent" : "ended";
}

/** "3 min 20 s", in the two largest units. */
export function durationText(seconds: number): string {
  const units: [number, string][] = [
    [86_400, "d"],
    [3600, "h"],
    [60, "min"],
    [1, "s"],
  ];
  const largest = Math.max(
    0,
    units.findIndex(([size]) => seconds >= size),
  );
  if (seconds < 1) return `${seconds.toFixed(1)} s`;
  let rest = Math.round(seconds);
  const parts = units.slice(largest, largest + 2).map(([size, unit]) => {
    const count = Math.floor(rest / size);
    rest -= count * size;
    return `${count} ${unit}`;
  });
  return parts.filter((part, i) => i === 0 || !part.startsWith("0 ")).join(" ");
}

/** "3 hours", the largest whole unit. */
export function agoText(seconds: number): string {
  const units: [number, string][] = [
    [365 * 86_400, "year"],
    [86_400, "day"],
    [3600, "hour"],
    [60, "minute"],
  ];
  const [size, unit] = units.find(([length]) => seconds >= length) ?? [1, "second"];
  return plural(Math.floor(Math.max(0, seconds) / size), unit);
}
