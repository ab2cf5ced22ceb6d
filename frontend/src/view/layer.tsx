/** The Layer view: which channels, and since when. */

import { useLayoutEffect, useMemo } from "preact/hooks";
import { deltaOf } from "../model/delta";
import { formatCount, formatNumber, formatShape, plural } from "../model/format";
import { MODES, type Mode } from "../model/hash";
import { lastAtOrBefore } from "../model/series";
import { ORDER_TITLES, ORDERS, type Order, orderRows } from "../model/sort";
import { STATE_BITS, STATE_NAMES, VIOLATED } from "../model/states";
import { moveLayer } from "./actions";
import { Button, DataTable, Failure, Icon, Marker, RunName, Skeleton, TableButton } from "./bits";
import { cursor } from "./cursor";
import { activeLayer, activeRun, cellSummary, cellsOf, layerIn, listedLayers, shownRuns } from "./data";
import { HeatPanel } from "./heatpanel";
import { Inspector } from "./inspector";
import { channel, mode, order, seekViolation, tables, update, variableId } from "./store";
import { Thumbnails } from "./thumbs";
import { accountText, pastText } from "./words";

const MODE_TITLES: Record<Mode, string> = { state: "State", both: "State + Δ", delta: "Δ" };

function Title() {
  const run = activeRun.value;
  const layer =
    run && activeLayer.value ? (layerIn(run, activeLayer.value.id) ?? activeLayer.value) : activeLayer.value;
  if (!layer) return null;
  const shown = layer.variables.find((variable) => variable.id === variableId.value) ?? layer;
  const at = listedLayers.value.findIndex((other) => other.id === layer.id);
  return (
    <div class="layer-title">
      <div class="joined">
        <Button label="Layer above (K)" disabled={at === 0} onClick={() => moveLayer(-1)}>
          <Icon name="up" />
        </Button>
        <Button label="Layer below (J)" disabled={at === listedLayers.value.length - 1} onClick={() => moveLayer(1)}>
          <Icon name="down" />
        </Button>
      </div>
      <h1 title={layer.id}>
        <bdi>{layer.id}</bdi>
      </h1>
      <p>
        {layer.type} {formatShape(shown.shape)} ·{" "}
        {plural(shown === layer ? layer.weights : shown.shape.reduce((product, size) => product * size, 1), "weight")} ·{" "}
        {plural(shown.channels, "channel")} on axis {shown.axis}
        {shown.verified ? "" : " (a guess for this kind of layer: set channel_axis= where it is wrong)"}
      </p>
      {layer.variables.length > 1 ? (
        <select
          aria-label="Variable of the layer"
          value={variableId.value ?? layer.variable}
          onChange={(event) => {
            const id = event.currentTarget.value;
            update({ variable: id === layer.variable ? null : id, channel: null });
          }}
        >
          {layer.variables.map((variable) => (
            <option key={variable.id} value={variable.id}>
              {variable.id.startsWith(`${layer.id}/`) ? variable.id.slice(layer.id.length + 1) : variable.id} (
              {variable.role})
            </option>
          ))}
        </select>
      ) : null}
      <div class="spring" />
      <TableButton panel="layer" what="the layer" />
    </div>
  );
}

function Controls() {
  const id = activeLayer.value?.id;
  return (
    <div class="controls">
      <div class="joined run-tabs" role="group" aria-label="Run">
        {shownRuns.value
          .filter((run) => id !== undefined && layerIn(run, id))
          .map((run) => (
            <Button
              key={run.name}
              class={run.name === activeRun.value?.name ? "under" : ""}
              pressed={run.name === activeRun.value?.name}
              title={run.name}
              onClick={() => update({ run: run.name })}
            >
              <Marker color={run.color} shape={run.shape} />
              <RunName text={run.name} />
            </Button>
          ))}
      </div>
      <CellControls />
    </div>
  );
}

/** What the cells of a heatmap show, and in which order. */
export function CellControls() {
  return (
    <>
      <div class="joined modes" role="group" aria-label="What the cells show">
        {MODES.map((value) => (
          <Button
            key={value}
            class={mode.value === value ? "under" : ""}
            pressed={mode.value === value}
            onClick={() => update({ mode: value })}
          >
            {MODE_TITLES[value]}
          </Button>
        ))}
      </div>
      <select
        class="sort"
        aria-label="Order of the channels"
        value={order.value}
        onChange={(event) => update({ order: event.currentTarget.value as Order })}
      >
        {ORDERS.map((value) => (
          <option key={value} value={value}>
            Sort: {ORDER_TITLES[value]}
          </option>
        ))}
      </select>
    </>
  );
}

function LayerTable() {
  const cells = cellsOf(activeRun.value!.name, activeLayer.value!.id).value!;
  const summary = cellSummary(cells);
  const rows = orderRows(summary, order.value);
  const record = cursor.value >= cells.end ? -1 : lastAtOrBefore(cells.steps, cursor.value);
  const stepOf = (t: number) => (t >= 0 && t < cells.records ? formatCount(cells.steps[t]) : "–");
  return (
    <DataTable
      caption={`Channels of ${activeLayer.value!.id} in ${activeRun.value!.name} at step ${formatCount(cursor.value)}`}
      columns={[
        { title: "Channel" },
        { title: "State", text: true },
        { title: "Relative Δ" },
        { title: "Last moved" },
        { title: "First frozen or pruned" },
        { title: "Violated", text: true },
      ]}
      rows={Array.from(rows, (c) => {
        const at = c * cells.records + record;
        return [
          c,
          record < 0 ? "–" : STATE_NAMES[cells.state[at] & STATE_BITS],
          record < 0 ? "–" : formatNumber(deltaOf(cells.delta[at])),
          stepOf(summary.lastMoved[c]),
          stepOf(summary.firstHeld[c]),
          summary.firstViolated[c] < 0
            ? ""
            : `from step ${stepOf(summary.firstViolated[c])}${record >= 0 && cells.state[at] & VIOLATED ? ", now" : ""}`,
        ];
      })}
    />
  );
}

/** A violated channel that a badge asked for, else the first row of the order. */
function useDefaultChannel(): void {
  const run = activeRun.value?.name;
  const layer = activeLayer.value?.id;
  const { value: cells, loading } = run && layer ? cellsOf(run, layer) : { value: null, loading: true };
  const seek = seekViolation.value;
  useLayoutEffect(() => {
    if (!seek || !cells || loading) return;
    seekViolation.value = false;
    const { firstViolated } = cellSummary(cells);
    let best = -1;
    firstViolated.forEach((t, c) => {
      if (t >= 0 && (best < 0 || t < firstViolated[best])) best = c;
    });
    if (best >= 0) update({ channel: best });
  }, [seek, cells, loading]);
}

export function LayerView() {
  useDefaultChannel();
  const run = activeRun.value;
  const layer = activeLayer.value;
  const found = run && layer ? cellsOf(run.name, layer.id) : null;
  const cells = found?.value ?? null;
  const rows = useMemo(
    () => (cells ? orderRows(cellSummary(cells), order.value) : new Uint32Array(0)),
    [cells, order.value],
  );
  if (!run || !layer || !found) {
    return <p class="message">No shown run has this layer. Tick a run on the left, or go back to the network (Esc).</p>;
  }
  const selected = channel.value !== null && cells && channel.value < cells.channels ? channel.value : null;
  return (
    <div class="layer-view">
      <Title />
      <div class="layer-columns">
        <section class="panel layer-panel" aria-label={`Layer ${layer.id}: channels over steps`}>
          <Controls />
          {found.error && !cells ? <Failure text={found.error} /> : null}
          {!cells && !found.error ? <Skeleton height={400} /> : null}
          {cells && cells.records === 0 ? (
            <p class="message">No record of this layer yet. The first one appears with the recorder's next flush.</p>
          ) : null}
          {cells && cells.records > 0 && cells.channels > 0 ? (
            tables.value.has("layer") ? (
              <LayerTable />
            ) : (
              <HeatPanel run={run} cells={cells} rows={rows} selected={selected} />
            )
          ) : null}
          {found.error && cells ? <Failure text={found.error} /> : null}
          <Thumbnails layer={layer.id} run={run} />
          <p class="under-panel">
            Δ compares with {pastText(run.past)}
            {shownRuns.value.some((other) => other.past !== run.past && layerIn(other, layer.id))
              ? "; other runs compare with another past, so their Δ can't be compared with it"
              : ""}
            .{cells && run.source === "sink" ? ` ${accountText(cells.header.account)}.` : ""}
          </p>
        </section>
        <Inspector
          run={run}
          layer={layer.id}
          cells={cells}
          channel={selected ?? (rows.length > 0 ? rows[0] : null)}
          chosen={selected !== null}
        />
      </div>
    </div>
  );
}
