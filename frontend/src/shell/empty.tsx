/** The empty state that teaches. */

import { useState } from "preact/hooks";
import { ABSENT } from "../data/absent";
import { plural } from "../data/format";
import { CopyLines, Switch } from "../parts/widgets";

const IMPORT = "import tb_pastnet as pastnet";

/** What records a training, by what trains. */
const LINES = {
  PyTorch: [IMPORT, 'recorder = pastnet.watch(model, "runs/a", optimizer, every=10)', "...  # your training loop"],
  Keras: [IMPORT, 'callback = pastnet.PastNetCallback("runs/a", every=10)', "model.fit(x, y, callbacks=[callback])"],
  JAX: [
    IMPORT,
    'recorder = pastnet.jax.Recorder("runs/a", params, every=10)',
    "...  # your training loop, and after each update:",
    "recorder.record(step, params)",
    "recorder.close()  # at the end",
  ],
  NumPy: [
    IMPORT,
    'arrays = {"dense/kernel": lambda: kernel}',
    'recorder = pastnet.numpy.Recorder("runs/a", arrays, every=10)',
    "...  # your training loop, and after each update:",
    "recorder.record(step)",
    "recorder.close()  # at the end",
  ],
};
type Framework = keyof typeof LINES;
const FRAMEWORKS = Object.keys(LINES) as Framework[];
const TITLES = Object.fromEntries(FRAMEWORKS.map((name) => [name, name])) as Record<Framework, string>;

export function Empty({ otherRuns, warnings }: { otherRuns: number; warnings: string[] }) {
  const [framework, setFramework] = useState<Framework>("PyTorch");
  return (
    <div class="empty">
      <h1>{ABSENT.data}</h1>
      <p>
        This tab shows which channels of a network still learn, which are quiet, and which are frozen or pruned, by step
        and by run. These lines record it:
      </p>
      <Switch label="You train with" options={FRAMEWORKS} titles={TITLES} value={framework} onPick={setFramework} />
      <CopyLines key={framework} lines={LINES[framework]} what="lines" />
      <p>
        Then start TensorBoard with <code>--logdir runs</code>. This page looks for data every 10 seconds.{" "}
        {otherRuns > 0
          ? `TensorBoard found ${plural(otherRuns, "run")} here, none with PastNet data.`
          : "TensorBoard found no runs in this log directory."}
      </p>
      {warnings.map((warning) => (
        <p key={warning} class="note">
          {warning}
        </p>
      ))}
    </div>
  );
}
