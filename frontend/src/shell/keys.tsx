/** Keys of the whole page, and the dialog that lists them. */

import { useLayoutEffect, useRef } from "preact/hooks";
import { watchKeys } from "../host";
import { Button, Icon } from "../parts/widgets";
import { toggleVersus } from "../state/baseline";
import { moveCursor, moveCursorTo } from "../state/cursor";
import { listViolations, showView } from "../state/navigate";
import { helpOpen, page, update } from "../state/store";
import { shownView } from "./parts";

type Action = (event: KeyboardEvent) => unknown;

/** Esc: a level up. */
function goUp(): void {
  if (page.peek().audit !== null) update({ audit: null });
  else if (keys()?.up() === false) showView("network", shownView()?.layer() ?? null);
}

const keys = () => shownView()?.keys;
const steps = () => shownView()?.steps() ?? new Float64Array(0);
const along = (by: number) => (event: KeyboardEvent) => moveCursor(steps(), event.shiftKey ? 10 * by : by);
const vertical = (by: number) => () => (keys()?.channel ?? keys()?.layer)?.(by);

/** As they are listed, what they do in words, and what each does. */
const KEYS: [string[], string, Record<string, Action>][] = [
  [["←", "→"], "previous record, next record", { ArrowLeft: along(-1), ArrowRight: along(1) }],
  [["Shift ←", "Shift →"], "ten records", {}],
  [["Home"], "first record", { Home: () => moveCursorTo(steps(), "first") }],
  [["End"], "jump to latest and follow", { End: () => moveCursorTo(steps(), "last") }],
  [["J", "K"], "layer below, layer above", { j: () => keys()?.layer(1), k: () => keys()?.layer(-1) }],
  [["[", "]"], "previous run, next run", { "[": () => keys()?.run(-1), "]": () => keys()?.run(1) }],
  [["{", "}"], "the other run (Compare view)", { "{": () => keys()?.other?.(-1), "}": () => keys()?.other?.(1) }],
  [["↑", "↓"], "channel above, channel below (Layer view)", { ArrowUp: vertical(-1), ArrowDown: vertical(1) }],
  [["P"], "pin or unpin the channel (Layer view)", { p: () => keys()?.pin?.() }],
  [["D"], "difference from the baseline, or values; in Compare: the baseline as B", { d: toggleVersus }],
  [["Enter"], "open the layer", { Enter: () => keys()?.down() }],
  [["Esc"], "close the list or the channel, then go back to the network", { Escape: goUp }],
  [["V"], "list the violations of the run", { v: () => listViolations(null) }],
  [["/"], "filter the layers", { "/": () => document.getElementById("layer-filter")?.focus() }],
  [["0"], "show all steps and rows again", { "0": () => update({ zoom: null, rowZoom: null }) }],
  [["?"], "show these keys", { "?": () => (helpOpen.value = true) }],
];
const ACTIONS: Record<string, Action> = Object.assign({}, ...KEYS.map(([, , actions]) => actions));

const POINTER = [
  ["Hover", "show the values of all panels at that step"],
  ["Click", "set the step, select the channel"],
  ["Double-click", "open the layer"],
  ["Drag", "zoom to those steps; in the heatmap, to those rows too"],
];

const typing = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.closest("input:not([type=checkbox]), select, textarea, dialog") !== null;

/** A focused button or summary keeps its own Enter. */
const activates = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.closest("button, summary, a") !== null;

export function listenToKeys(): void {
  watchKeys((event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (event.key === "Enter" && activates(event.target)) return;
    if (event.target instanceof HTMLElement && event.target.closest(".table-scroll")) return;
    const action = ACTIONS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    event.preventDefault();
    action(event);
  });
}

/** A dialog that is open if `open`; its title gets the focus if it can. */
export function useDialog(open: boolean) {
  const ref = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    if (open && !ref.current?.open) {
      ref.current?.showModal();
      ref.current?.querySelector<HTMLElement>("h2[tabindex]")?.focus();
    }
    if (!open) ref.current?.close();
  }, [open]);
  return ref;
}

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
