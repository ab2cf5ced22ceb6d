/** The Layer view: one layer of one run, channel by channel over steps. */

import { ABSENT, DASH } from "../../data/absent";
import { type Cells, cellAt, figuresAt, lagAt, summarise } from "../../data/cells";
import { formatCount, formatNumber, formatShape, plural } from "../../data/format";
import { LISTED, STATE_NAMES } from "../../data/states";
import { CellControls, RunTabs } from "../../parts/controls";
import { Button, DataTable, Icon, Notes, Select, Status, TableButton, Waiting } from "../../parts/widgets";
import { accountText, asideText, pastText, sharesText } from "../../parts/words";
import { cellsOf } from "../../state/answers";
import { baseCell, baseOf, differs, layerDifference, sameOrigin } from "../../state/baseline";
import { cursor } from "../../state/cursor";
import { numberSteps } from "../../state/followers";
import { stepLayer, stepRun, togglePin } from "../../state/navigate";
import { insteadText } from "../../state/resource";
import { allRows, drawnRows, orderRun } from "../../state/rows";
import {
  activeLayer,
  activeRun,
  layerIn,
  layers,
  listedLayers,
  type Run,
  shownRuns,
  variableOf,
  viewedSteps,
} from "../../state/runs";
import { channel, layerId, page, tables, update, variableId } from "../../state/store";
import inspectorStyles from "../../style/inspector.css";
import layerStyles from "../../style/layer.css";
import { runFiles, type View } from "../view";
import { HeatPanel } from "./heatpanel";
import { Inspector } from "./inspector";
import { Thumbnails } from "./thumbs";

const UNKNOWN_ORIGIN = "isn't known to have started from the same weights";

function Title() {
  const run = activeRun.value;
  const layer = (run && activeLayer.value && layerIn(run, activeLayer.value.id)) ?? activeLayer.value;
  if (!layer) return null;
  const shown = layer.variables.find((variable) => variable.id === variableId.value) ?? layer;
  const list = listedLayers.value;
  const place = list.findIndex(({ id }) => id === layer.id);
  const weights = shown === layer ? layer.weights : shown.shape.reduce((product, size) => product * size, 1);
  return (
    <div class="layer-title">
      <div class="joined">
        <Button label="Layer above (K)" disabled={place === 0} onClick={() => stepLayer(list, layer.id, -1)}>
          <Icon name="up" />
        </Button>
        <Button
          label="Layer below (J)"
          disabled={place === list.length - 1}
          onClick={() => stepLayer(list, layer.id, 1)}
        >
          <Icon name="down" />
        </Button>
      </div>
      <h1 title={layer.id}>
        <bdi>{layer.id}</bdi>
      </h1>
      <p>
        {layer.type} {formatShape(shown.shape)} · {plural(weights, "weight")} · {plural(shown.channels, "channel")} on
        axis {shown.axis}
        {shown.verified ? "" : " (guessed for this kind of layer; if it is wrong, set channel_axis=)"}
      </p>
      {layer.variables.length > 1 ? (
        <Select
          label="Variable of the layer"
          value={variableId.value ?? layer.variable}
          options={layer.variables.map(({ id, role }) => [
            id,
            `${id.startsWith(`${layer.id}/`) ? id.slice(layer.id.length + 1) : id} (${role})`,
          ])}
          onPick={(id) => update({ variable: id === layer.variable ? null : id, channel: null })}
        />
      ) : null}
      <div class="spring" />
      <TableButton panel="layer" what="the layer" />
    </div>
  );
}

/** More runs than these aren't named. */
const MOST_NAMES = 3;

/** The shown runs that lack the layer, or its chosen variable; null if none does. */
function lackingText(layer: string): string | null {
  const names = shownRuns.value.filter((run) => !layerIn(run, layer)).map(({ name }) => name);
  if (names.length === 0) return null;
  const rest = names.length - MOST_NAMES;
  const listed = names.slice(0, MOST_NAMES).join(", ") + (rest > 0 ? ` and ${plural(rest, "more run")}` : "");
  return `${listed}: no such ${variableOf(layer) === null ? "layer" : "variable"}.`;
}

/** What limits the picture: no difference from the baseline, an order of other channels. */
function Reservations({ run, layer, reason }: { run: Run; layer: string; reason: string | null }) {
  const by = orderRun(run, layer);
  const theirs = by && cellsOf(by.name, layer);
  const foreign = by?.origin && run.origin ? "started from different weights" : UNKNOWN_ORIGIN;
  const order = `the order of rows means nothing for ${run.name}.`;
  return (
    <Notes
      texts={[
        lackingText(layer),
        differs.value && !baseOf(run) && `${run.name} is the baseline: these are its values.`,
        reason && `${reason}: these are the values of ${run.name}, not differences channel by channel.`,
        by !== null &&
          theirs !== null &&
          !theirs.value &&
          `The order of ${by.name} is ${insteadText(theirs)}: rows are in their own.`,
        by !== null && theirs?.value != null && !sameOrigin(run, by) && `${by.name} ${foreign}: ${order}`,
      ]}
    />
  );
}

interface TableProps {
  run: Run;
  layer: string;
  cells: Cells;
  /** The channels to list. */
  rows: Uint32Array;
  /** The baseline, where differences to it are shown. */
  base: Run | null;
}

/** The channels of a layer at the cursor. */
function LayerTable({ run, layer, cells, rows, base }: TableProps) {
  const summary = summarise(cells);
  const compared = base ? [`State in ${base.name}`, `Δ in ${base.name}`, "Ratio of Δ"] : [];
  const stepOf = (record: number) => (record >= 0 && record < cells.records ? formatCount(cells.steps[record]) : DASH);
  const against = (other: Run, channel: number, delta = Number.NaN): string[] => {
    const theirs = baseCell(other, layer, channel, cursor.value);
    return theirs ? [STATE_NAMES[theirs.state], formatNumber(theirs.delta), theirs.times(delta)] : [DASH, DASH, DASH];
  };
  return (
    <DataTable
      caption={`Channels of ${layer} in ${run.name} at step ${formatCount(cursor.value)}`}
      columns={["Channel", "State", "Relative Δ", "Last moved", "First frozen or pruned", "Violated", ...compared]}
      texts={["State", "Violated", ...compared.slice(0, 1)]}
      rows={Array.from(rows, (channel) => {
        const cell = cellAt(cells, channel, cursor.value);
        const violated = summary.firstViolated[channel];
        return [
          channel,
          cell ? STATE_NAMES[cell.state] : DASH,
          formatNumber(cell?.delta),
          stepOf(summary.lastMoved[channel]),
          stepOf(summary.firstHeld[channel]),
          violated < 0 ? "" : `from step ${stepOf(violated)}${cell?.violated ? ", now" : ""}`,
          ...(base ? against(base, channel, cell?.delta) : []),
        ];
      })}
    />
  );
}

function LayerView() {
  const run = activeRun.value;
  const layer = activeLayer.value;
  if (!run || !layer) {
    const wanted = layerId.value === null ? "this layer" : `layer '${layerId.value}'`;
    return (
      <p class="message">
        {ABSENT.layerOf} {wanted}. Tick a run on the left, or go back to the network (Esc).
      </p>
    );
  }
  const answer = cellsOf(run.name, layer.id);
  const cells = answer.value;
  const rows = cells ? drawnRows(allRows(run, layer.id, cells)) : new Uint32Array(0);
  const base = baseOf(run);
  const difference = base && cells ? layerDifference(run, base, layer.id, cells) : null;
  return (
    <div class="layer-view">
      <Title />
      <div class="layer-columns">
        <section class="panel layer-panel" aria-label={`Layer ${layer.id}: channels over steps`}>
          <div class="controls">
            <RunTabs label="Run" runs={shownRuns.value.filter((other) => layerIn(other, layer.id))} chosen={run} />
            <CellControls />
          </div>
          <Reservations run={run} layer={layer.id} reason={difference?.reason ?? null} />
          <Waiting answer={answer} height={400} />
          {cells ? <Status of={[[base?.name ?? "", difference?.asked ?? null]]} /> : null}
          {cells && cells.records === 0 ? <p class="message">{ABSENT.recordOf}. Reload TensorBoard later.</p> : null}
          {cells && cells.records > 0 && cells.channels > 0 ? (
            tables.value.has("layer") ? (
              <LayerTable run={run} layer={layer.id} cells={cells} rows={rows} base={difference?.cells ? base : null} />
            ) : (
              <HeatPanel run={run} cells={cells} differences={difference?.cells ?? null} rows={rows} />
            )
          ) : null}
          <Thumbnails layer={layer.id} run={run} />
          <p class="under-panel">
            <Compared run={run} cells={cells} />
            {shownRuns.value.some((other) => other.past !== run.past && layerIn(other, layer.id))
              ? "; other runs use a different past, so their Δ can't be compared with it"
              : ""}
            .{cells && run.source === "sink" ? ` ${accountText(cells.header.account)}.` : ""}
          </p>
        </section>
        <Inspector run={run} layer={layer.id} cells={cells} rows={rows} />
      </div>
    </div>
  );
}

/** What the Δ at the cursor compares with. */
function Compared({ run, cells }: { run: Run; cells: Cells | null }) {
  return <>Δ compares with {pastText(run.past, cells && lagAt(cells, numberSteps[1].value))}</>;
}

/** The layer of the run that is shown, once it is there. */
function shownLayer() {
  const [run, layer] = [activeRun.value, activeLayer.value];
  const cells = run && layer ? cellsOf(run.name, layer.id).value : null;
  return run && layer && cells ? { run, layer, cells } : null;
}

/** The channels in drawing order. */
function drawnChannels(): Uint32Array | null {
  const shown = shownLayer();
  if (!shown || shown.cells.channels === 0) return null;
  return drawnRows(allRows(shown.run, shown.layer.id, shown.cells));
}

function speak(): string {
  const shown = shownLayer();
  if (!shown) return "";
  const { run, layer, cells } = shown;
  const start = `Step ${formatCount(cursor.value)}, ${run.name}, ${layer.id}`;
  const cell = channel.value === null ? null : cellAt(cells, channel.value, cursor.value);
  if (!cell) {
    const figures = figuresAt(cells, cursor.value);
    return `${start}: ${sharesText(figures)}${asideText(figures, cursor.value)}`;
  }
  const violated = cell.violated ? ", violated" : "";
  return `${start}, channel ${channel.value}: ${STATE_NAMES[cell.state]}${violated}, Δ ${formatNumber(cell.delta)}`;
}

export const layer: View = {
  component: LayerView,
  css: [layerStyles, inspectorStyles].join("\n"),
  steps: () => shownLayer()?.cells.steps ?? viewedSteps.value,
  layer: () => activeLayer.value?.id ?? null,
  keys: {
    layer(by) {
      stepLayer(listedLayers.value.length > 0 ? listedLayers.value : layers.value, activeLayer.value?.id, by);
    },
    run: (by) => stepRun(shownRuns.value, activeRun.value?.name, by),
    down() {},
    up() {
      if (page.peek().channel === null) return false;
      update({ channel: null });
      return true;
    },
    channel(by) {
      const rows = drawnChannels();
      if (!rows) return;
      const place = channel.value === null ? -1 : rows.indexOf(channel.value);
      update({ channel: rows[Math.min(rows.length - 1, Math.max(0, place + by))] });
    },
    pin() {
      const rows = drawnChannels();
      if (rows) togglePin(channel.value ?? rows[0]);
    },
  },
  speak,
  caption: () => `${activeLayer.value?.id ?? "Layer"} · ${activeRun.value?.name ?? ""}`,
  states: LISTED,
  files() {
    const own = activeRun.value;
    const list = own ? [own, ...shownRuns.value.filter((run) => run.name !== own.name)] : shownRuns.value;
    const layer = activeLayer.value?.id ?? null;
    return runFiles(layer === null ? list : list.filter((run) => layerIn(run, layer)), layer);
  },
};
