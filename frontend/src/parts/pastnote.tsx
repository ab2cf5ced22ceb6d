/** Says where shown runs compare with different pasts. */

import { plural } from "../data/format";
import { type Run, shownRuns } from "../state/runs";
import { pastText } from "./words";

/** What differs between the runs' past, said once for all of them. */
export function PastNote({ runs = shownRuns.value }: { runs?: readonly Run[] }) {
  const pasts = new Map<string | null, string[]>();
  for (const run of runs) pasts.set(run.past, [...(pasts.get(run.past) ?? []), run.name]);
  if (pasts.size < 2) return null;
  const text = [...pasts]
    .map(([past, names]) => `${names.length > 3 ? plural(names.length, "run") : names.join(", ")}: ${pastText(past)}`)
    .join("; ");
  return <p class="note">The runs compare with different pasts, so their changes can't be compared: {text}.</p>;
}
