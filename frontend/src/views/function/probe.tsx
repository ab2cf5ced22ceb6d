/** What the outputs were compared on, and how to record it where it is missing. */

import { formatCount, plural } from "../../data/format";
import { probeText } from "../../data/function";
import { CopyLines, Notes, RunLabel } from "../../parts/widgets";
import { pastsText, pastText } from "../../parts/words";
import { type Probed, probed, probedRuns, unprobedRuns } from "../../state/probed";
import { shownRuns } from "../../state/runs";

const LINES = [
  "probe = x_test[:32]  # any fixed batch",
  'callback = pastnet.PastNetCallback("runs/a", every=10, probe=probe)',
  "model.fit(x, y, callbacks=[callback])",
];

const names = (list: readonly { name: string }[]): string => list.map(({ name }) => name).join(", ");

function How() {
  return (
    <>
      <CopyLines lines={LINES} what="three lines" />
      <p>
        A <code>Recorder</code> in a loop of your own takes the same <code>probe=</code>. Training isn't touched: losses
        and weights stay the same, bit by bit.
      </p>
    </>
  );
}

/** In place of the view, where no shown run has a probe. */
export function NoProbe() {
  return (
    <div class="empty">
      <h1>No probe was recorded</h1>
      <p>
        This view shows how far the outputs of the network and of each layer moved: past network against current one, on
        the same batch. Three lines record it:
      </p>
      <How />
      <p>
        {shownRuns.value.length > 0
          ? `Shown runs without a probe: ${names(unprobedRuns.value)}.`
          : "No runs selected. Tick a run on the left, or change the filter for runs."}
      </p>
    </div>
  );
}

export function FunctionProbe({ entry: { run, series } }: { entry: Probed }) {
  const { header, steps } = series;
  const without = unprobedRuns.value;
  const batches = new Set(probed.value.map((other) => JSON.stringify(other.series.header.probe)));
  return (
    <section class="panel fn-panel fn-probe" aria-label="Probe">
      <header>
        <h2>Probe</h2>
        <RunLabel run={run} />
      </header>
      <ul>
        {probeText(header.probe).map((text) => (
          <li key={text}>{text}</li>
        ))}
        <li>Compared with {pastText(header.past)}</li>
        <li>
          {plural(steps.length, "record")}, steps {formatCount(steps[0])} to {formatCount(steps[steps.length - 1])}, of{" "}
          {plural(header.places.length, "place")}
        </li>
        {header.changed.length > 0 ? (
          <li>Another batch from step {header.changed.map(formatCount).join(", ")} on</li>
        ) : null}
      </ul>
      <Notes
        texts={[
          pastsText(probedRuns.value),
          batches.size > 1 && "The runs were probed with different batches: compare with care.",
          ...header.notes.map(({ text, count }) => `${text} (${plural(count, "time")})`),
        ]}
      />
      {without.length > 0 ? (
        <details>
          <summary>
            {plural(without.length, "shown run")} without a probe: {names(without)}
          </summary>
          <How />
        </details>
      ) : null}
    </section>
  );
}
