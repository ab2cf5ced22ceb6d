/** The empty state that teaches. */

import { signal } from "@preact/signals";
import { copyText } from "../host";
import { plural } from "../model/format";
import { Button, Icon } from "./bits";

const LINES = [
  "import tb_pastnet as pastnet",
  'callback = pastnet.PastNetCallback("runs/a", every=10)',
  "model.fit(x, y, callbacks=[callback])",
];

const copied = signal(false);

export function Empty({ otherRuns, warnings }: { otherRuns: number; warnings: string[] }) {
  return (
    <div class="empty">
      <h1>No PastNet data yet</h1>
      <p>
        This tab shows which channels of a network still learn, which have settled, and which are frozen or pruned, over
        steps and across runs. Three lines record it while Keras trains:
      </p>
      <pre>{LINES.join("\n")}</pre>
      <Button
        onClick={() =>
          void copyText(LINES.join("\n")).then((worked) => {
            copied.value = worked;
          })
        }
      >
        <Icon name={copied.value ? "check" : "link"} /> {copied.value ? "Copied" : "Copy the three lines"}
      </Button>
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
