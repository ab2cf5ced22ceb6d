/** The Compare view: where do two runs differ? Mask overlap of all pairs, by layer and step, and two layers side by side. */

import { useEffect } from "preact/hooks";
import { mostDifferent } from "../../data/overlap";
import { pastText } from "../../parts/words";
import { MOST_RUNS, overlapOf, pairRuns } from "../../state/overlaps";
import { runs, shownRuns } from "../../state/runs";
import { other, runName, update } from "../../state/store";
import { LayersPanel } from "./layers";
import { MatrixPanel } from "./matrix";
import { SidePanel } from "./sidebyside";

/** What makes the runs' numbers differ for a reason that isn't theirs. */
function Notes() {
  const [a, b] = pairRuns.value!;
  const more = shownRuns.value.length - MOST_RUNS;
  return (
    <>
      {more > 0 ? (
        <p class="note">
          The first {MOST_RUNS} of {shownRuns.value.length} shown runs are compared; the filter for runs picks others.
        </p>
      ) : null}
      {a.past !== b.past ? (
        <p class="note">
          Δ of {a.name} compares with {pastText(a.past)}, that of {b.name} with {pastText(b.past)}: their Δ can't be
          compared. Masks can.
        </p>
      ) : null}
    </>
  );
}

/** Opens on what there is to see: where B isn't chosen, on the runs that differ most. */
function useDifferent(): void {
  const answer = other.value === null && pairRuns.value ? overlapOf().value : null;
  useEffect(() => {
    const found = answer && mostDifferent(answer, runName.peek());
    if (found) update({ run: found[0], other: found[1] });
  }, [answer]);
}

export function CompareView() {
  useDifferent();
  const pair = pairRuns.value;
  if (!pair) {
    const untold = runs.value.length > 1 ? "Tick another run on the left" : "Record a second run";
    return (
      <section class="panel" aria-label="Compare">
        <p class="message">
          Two runs are needed to compare their masks; {shownRuns.value.length === 1 ? "one is" : "none is"} shown.{" "}
          {untold}, or change the filter for runs.
        </p>
      </section>
    );
  }
  return (
    <div class="compare">
      <section class="panel compare-left" aria-label="Mask overlap of the shown runs">
        <MatrixPanel pair={pair} />
        <LayersPanel pair={pair} />
      </section>
      <section class="panel compare-right" aria-label="The layer in both runs, and the difference">
        <Notes />
        <SidePanel pair={pair} />
      </section>
    </div>
  );
}
