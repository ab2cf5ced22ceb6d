import { formatShape, plural } from "../../data/format";
import { CellControls, RunTab } from "../../parts/controls";
import { Button, Failure, Icon, Skeleton, TableButton } from "../../parts/widgets";
import { accountText, pastText } from "../../parts/words";
import { cellsOf } from "../../state/answers";
import { baseOf, differs, layerDifference, sameOrigin } from "../../state/baseline";
import { stepLayer } from "../../state/navigate";
import { allRows, drawnRows, orderRun } from "../../state/rows";
import { activeLayer, activeRun, layerIn, listedLayers, type Run, shownRuns } from "../../state/runs";
import { layerId, tables, update, variableId } from "../../state/store";
import { HeatPanel } from "./heatpanel";
import { Inspector } from "./inspector";
import { LayerTable } from "./table";
import { Thumbnails } from "./thumbs";

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
        <Button label="Layer above (K)" disabled={at === 0} onClick={() => stepLayer(listedLayers.value, layer.id, -1)}>
          <Icon name="up" />
        </Button>
        <Button
          label="Layer below (J)"
          disabled={at === listedLayers.value.length - 1}
          onClick={() => stepLayer(listedLayers.value, layer.id, 1)}
        >
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
            <RunTab key={run.name} run={run} on={run.name === activeRun.value?.name} />
          ))}
      </div>
      <CellControls />
    </div>
  );
}

/** What limits the picture: no difference to the baseline, an order that isn't of the same channels. */
function Reservations({ run, layer, reason }: { run: Run; layer: string; reason: string | null }) {
  const by = orderRun(run, layer);
  return (
    <>
      {differs.value && !baseOf(run) ? <p class="note">{run.name} is the baseline: these are its values.</p> : null}
      {reason ? (
        <p class="note">
          {reason}: these are the values of {run.name}, no difference channel by channel.
        </p>
      ) : null}
      {by && !sameOrigin(run, by) ? (
        <p class="note">
          {by.name}{" "}
          {by.origin && run.origin ? "started from other weights" : "isn't known to have started from the same weights"}
          : a row's place says nothing about the channel of {run.name} in it.
        </p>
      ) : null}
    </>
  );
}

export function LayerView() {
  const run = activeRun.value;
  const layer = activeLayer.value;
  const found = run && layer ? cellsOf(run.name, layer.id) : null;
  const cells = found?.value ?? null;
  if (!run || !layer || !found) {
    const wanted = layerId.value === null ? "this layer" : `layer '${layerId.value}'`;
    return (
      <p class="message">No selected run has {wanted}. Tick a run on the left, or go back to the network (Esc).</p>
    );
  }
  const rows = cells ? drawnRows(allRows(run, layer.id, cells)) : new Uint32Array(0);
  const base = baseOf(run);
  const difference = base && cells ? layerDifference(run, base, layer.id, cells) : null;
  return (
    <div class="layer-view">
      <Title />
      <div class="layer-columns">
        <section class="panel layer-panel" aria-label={`Layer ${layer.id}: channels over steps`}>
          <Controls />
          <Reservations run={run} layer={layer.id} reason={difference?.reason ?? null} />
          {found.error && !cells ? <Failure text={found.error} /> : null}
          {!cells && !found.error ? <Skeleton height={400} /> : null}
          {cells && cells.records === 0 ? (
            <p class="message">No record of this layer yet. Reload TensorBoard when training has gone on.</p>
          ) : null}
          {cells && cells.records > 0 && cells.channels > 0 ? (
            tables.value.has("layer") ? (
              <LayerTable run={run} layer={layer.id} cells={cells} rows={rows} base={difference?.cells ? base : null} />
            ) : (
              <HeatPanel run={run} cells={cells} differences={difference?.cells ?? null} rows={rows} />
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
        <Inspector run={run} layer={layer.id} cells={cells} rows={rows} />
      </div>
    </div>
  );
}
