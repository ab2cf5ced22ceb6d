/** The empty state that teaches. */

import { plural } from "../data/format";
import { CopyLines } from "../parts/widgets";

const LINES = [
  "import tb_pastnet as pastnet",
  'callback = pastnet.PastNetCallback("runs/a", every=10)',
  "model.fit(x, y, callbacks=[callback])",
];

export function Empty({ otherRuns, warnings }: { otherRuns: number; warnings: string[] }) {
  return (
    <div class="empty">
      <h1>No PastNet data yet</h1>
      <p>
        This tab shows which channels of a network still learn, which have settled, and which are frozen or pruned, over
        steps and across runs. Three lines record it while Keras trains:
      </p>
      <CopyLines lines={LINES} what="three lines" />
      <p>
        Then start TensorBoard with <code>--logdir runs</code> or reload it.{" "}
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
