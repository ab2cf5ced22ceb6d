/** What chooses a run, and what the cells of a heatmap show; several views have them. */

import { ORDER_TITLES, ORDERS, type Order } from "../data/sort";
import { MODES, type Mode } from "../data/urlstate";
import { orderRun } from "../state/rows";
import { activeLayer, activeRun, layerIn, type Run, shownRuns } from "../state/runs";
import { mode, order, update, view } from "../state/store";
import { RunLabel, Select, Switch } from "./widgets";

const MODE_TITLES: Record<Mode, string> = { state: "State", both: "State + Δ", delta: "Δ" };

/** Tabs that choose the run. */
export function RunTabs({ label, runs, chosen }: { label: string; runs: readonly Run[]; chosen?: Run | null }) {
  return (
    <Switch
      class="run-tabs"
      label={label}
      options={runs.map(({ name }) => name)}
      titles={Object.fromEntries(runs.map((run) => [run.name, <RunLabel key={run.name} run={run} />]))}
      value={chosen?.name}
      onPick={(name) => update({ run: name })}
    />
  );
}

const OF = "of ";

/** The order of the channels: by what they did in this run, or in another one. */
function SortMenu() {
  const run = view.value === "layer" ? activeRun.value : null;
  const layer = run && activeLayer.value ? layerIn(run, activeLayer.value.id) : undefined;
  const other = run && layer ? orderRun(run, layer.id) : null;
  const others = shownRuns.value.filter(
    (shown) => layer && shown.name !== run?.name && layerIn(shown, layer.id)?.channels === layer.channels,
  );
  const title = ORDER_TITLES[order.value];
  return (
    <Select
      class={`sort ${other ? "long" : ""}`}
      label="Order of the channels"
      value={other ? `${OF}${other.name}` : order.value}
      options={ORDERS.map((value) => [value, `Sort: ${ORDER_TITLES[value]}`])}
      onPick={(value) => {
        if (value.startsWith(OF)) update({ rowsOf: value.slice(OF.length) });
        else update({ order: value as Order, rowsOf: null });
      }}
    >
      {others.length > 0 && order.value !== "index" ? (
        <optgroup label={`${title}, as in`}>
          {others.map(({ name }) => (
            <option key={name} value={`${OF}${name}`}>
              Sort: {title} in {name}
            </option>
          ))}
        </optgroup>
      ) : null}
    </Select>
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
      <SortMenu />
    </>
  );
}
