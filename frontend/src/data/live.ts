/** Whether a run is still recording, judging by its records. */

import type { RunInfo } from "../server/types";
import { plural } from "./format";

/** A run is live while its last record is younger than this, or than a few of its intervals between records. */
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

/** Units of time by their seconds, the largest first. */
const UNITS: readonly [number, string, string][] = [
  [365 * 86_400, "", "year"],
  [86_400, "d", "day"],
  [3600, "h", "hour"],
  [60, "min", "minute"],
  [1, "s", "second"],
];

/** "3 min 20 s", in the two largest units. */
export function durationText(seconds: number): string {
  if (seconds < 1) return `${seconds.toFixed(1)} s`;
  const largest = UNITS.findIndex(([size, short]) => short && seconds >= size);
  let rest = Math.round(seconds);
  const parts = UNITS.slice(largest, largest + 2).map(([size, short]) => {
    const count = Math.floor(rest / size);
    rest -= count * size;
    return `${count} ${short}`;
  });
  return parts.filter((part, i) => i === 0 || !part.startsWith("0 ")).join(" ");
}

/** "3 h", in the largest whole unit: the side bar has little room. */
export function agoText(seconds: number): string {
  const [size, short, unit] = UNITS.find(([length]) => seconds >= length) ?? UNITS[UNITS.length - 1];
  const count = Math.floor(Math.max(0, seconds) / size);
  return short ? `${count} ${short}` : plural(count, unit);
}
