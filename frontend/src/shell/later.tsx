/** Parts that the first picture does without: the tooltip, the list of keys, and that of violations. */

import { Button, Icon } from "../parts/widgets";
import { helpOpen } from "../state/store";
import { styleLate } from "../style";
import audit from "../style/audit.css";
import floating from "../style/floating.css";
import { useDialog } from "./dialog";
import { KEYS } from "./keys";

export { Empty } from "./empty";
export { Readout } from "./readout";
export { Records } from "./records";
export { Scales } from "./scales";

import { Tooltip } from "./tooltip";
import { ViolationsList } from "./violations";

styleLate(`${floating}\n${audit}`);

const POINTER = [
  ["Hover", "show the values of all panels at that step"],
  ["Click", "set the step, select the channel"],
  ["Double-click", "open the layer"],
  ["Drag", "zoom to those steps; in the heatmap, to those rows too"],
];

export function Help() {
  const ref = useDialog(helpOpen.value);
  return (
    <dialog ref={ref} aria-labelledby="help-title" onClose={() => (helpOpen.value = false)}>
      <header>
        <h2 id="help-title">Keys and pointer</h2>
        <Button class="small" label="Close" onClick={() => (helpOpen.value = false)}>
          <Icon name="close" size={16} />
        </Button>
      </header>
      <dl class="keys">
        {KEYS.map(([names, what]) => (
          <div key={what}>
            <dt>
              {names.map((name) => (
                <kbd key={name}>{name}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
        {POINTER.map(([gesture, what]) => (
          <div key={gesture}>
            <dt>{gesture}</dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </dialog>
  );
}

export const Later = () => (
  <>
    <Tooltip />
    <ViolationsList />
    <Help />
  </>
);
