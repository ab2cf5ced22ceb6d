/** All keys. */

import { useLayoutEffect, useRef } from "preact/hooks";
import { Button, Icon } from "../parts/widgets";
import { helpOpen } from "../state/store";

const KEYS: [string[], string][] = [
  [["←", "→"], "previous record, next record"],
  [["Shift ←", "Shift →"], "ten records"],
  [["Home"], "first record"],
  [["End"], "jump to latest and follow"],
  [["J", "K"], "layer below, layer above"],
  [["[", "]"], "previous run, next run"],
  [["{", "}"], "the other run (Compare view)"],
  [["↑", "↓"], "channel above, channel below (Layer view)"],
  [["P"], "pin or unpin the channel (Layer view)"],
  [["D"], "difference to the baseline, or values; in Compare the baseline as B"],
  [["Enter"], "open the layer"],
  [["Esc"], "close the list or the channel, then back to the network"],
  [["V"], "list the violations of the run"],
  [["/"], "filter the layers"],
  [["0"], "show all steps and rows again"],
  [["?"], "these keys"],
];

export function Help() {
  const ref = useRef<HTMLDialogElement>(null);
  const open = helpOpen.value;
  useLayoutEffect(() => {
    if (open && !ref.current?.open) ref.current?.showModal();
    if (!open) ref.current?.close();
  }, [open]);
  return (
    <dialog ref={ref} aria-labelledby="help-title" onClose={() => (helpOpen.value = false)}>
      <header>
        <h2 id="help-title">Keys and pointer</h2>
        <Button class="small" label="Close" onClick={() => (helpOpen.value = false)}>
          <Icon name="close" size={16} />
        </Button>
      </header>
      <dl class="keys">
        {KEYS.map(([keys, what]) => (
          <div key={what}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
        <div>
          <dt>Hover</dt>
          <dd>read all panels at that step</dd>
        </div>
        <div>
          <dt>Click</dt>
          <dd>set the step, select the channel</dd>
        </div>
        <div>
          <dt>Double-click</dt>
          <dd>open the layer</dd>
        </div>
        <div>
          <dt>Drag</dt>
          <dd>zoom to those steps, in the heatmap also to those rows</dd>
        </div>
      </dl>
    </dialog>
  );
}
