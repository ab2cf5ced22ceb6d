/** The shown runs, grouped where a pattern says which differ in their seed alone. */

import { computed } from "@preact/signals";
import { groupName } from "../data/groups";
import { shortNames } from "../data/names";
import { type Run, shownRuns } from "./runs";
import { grouping } from "./store";

export interface RunGroup {
  name: string;
  runs: Run[];
}

/** In the order of their first runs; a run that the pattern doesn't fit is a group of its own. */
export const groups = computed<RunGroup[]>(() => {
  const { pattern } = grouping.value;
  const found = new Map<string, Run[]>();
  for (const run of shownRuns.value) {
    const group = pattern && groupName(run.name, pattern);
    const key = group === null ? `run ${run.name}` : `group ${group}`;
    found.set(key, [...(found.get(key) ?? []), run]);
  }
  const names = [...found.keys()].map((key) => key.slice(key.indexOf(" ") + 1));
  const short = shortNames(names);
  return [...found.values()].map((runs, i) => ({ name: short.get(names[i]) || "(all)", runs }));
});
