/** What chooses a run, and what the cells of a heatmap show; several views have them. */

import { MODES, type Mode } from "../data/urlstate";
import { activeLayer, activeRun, type Run } from "../state/runs";
import { mode, update, view } from "../state/store";
import { SortMenu } from "./sortmenu";
import { Button, Marker, RunName, Switch } from "./widgets";

const MODE_TITLES: Record<Mode, string> = { state: "State", both: "State + Δ", delta: "Δ" };

/** One of the tabs that choose the run. */
export function RunTab({ run, on }: { run: Run; on: boolean }) {
  return (
    <Button class={on ? "under" : ""} pressed={on} title={run.name} onClick={() => update({ run: run.name })}>
      <Marker color={run.color} shape={run.shape} />
      <RunName text={run.short} />
    </Button>
  );
}

/** What the cells of a heatmap show, and in which order. */
export function CellControls() {
  return (
    <>
      <Switch
        class="modes"
        label="What the cells show"
        options={MODES}
        titles={MODE_TITLES}
        value={mode.value}
        onPick={(value) => update({ mode: value })}
      />
      <SortMenu run={view.value === "layer" ? activeRun.value : null} layer={activeLayer.value?.id ?? null} />
    </>
  );
}
