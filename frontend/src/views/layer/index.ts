/** The Layer view as the frame knows it. */

import { deltaAt, figuresAt, recordAt } from "../../data/cells";
import { formatCount, formatNumber } from "../../data/format";
import { STATE_BITS, STATE_NAMES, VIOLATED } from "../../data/states";
import { asideText, sharesText } from "../../parts/words";
import { cellsOf } from "../../state/answers";
import { cursor } from "../../state/cursor";
import { stepLayer, stepRun, togglePin } from "../../state/navigate";
import { allRows, drawnRows } from "../../state/rows";
import { activeLayer, activeRun, layers, listedLayers, shownRuns, viewedSteps } from "../../state/runs";
import { channel, page, update } from "../../state/store";
import inspectorStyles from "../../style/inspector.css";
import layerStyles from "../../style/layer.css";
import type { View } from "../view";
import { runFiles } from "../view";
import { LayerView } from "./layer";

/** The channels in drawing order. */
function drawnChannels(): Uint32Array | null {
  const [run, layer] = [activeRun.value, activeLayer.value];
  const cells = run && layer ? cellsOf(run.name, layer.id).value : null;
  return run && layer && cells && cells.channels > 0 ? drawnRows(allRows(run, layer.id, cells)) : null;
}

function speak(): string {
  const [run, layer, own] = [activeRun.value, activeLayer.value, channel.value];
  const cells = run && layer ? cellsOf(run.name, layer.id).value : null;
  if (!run || !layer || !cells) return "";
  const start = `Step ${formatCount(cursor.value)}, ${run.name}, ${layer.id}`;
  const record = recordAt(cells, cursor.value);
  if (own === null || own >= cells.channels || record < 0) {
    const figures = figuresAt(cells, cursor.value);
    return `${start}: ${sharesText(figures)}${asideText(figures, cursor.value)}`;
  }
  const cell = own * cells.records + record;
  const violated = cells.state[cell] & VIOLATED ? ", violated" : "";
  return `${start}, channel ${own}: ${STATE_NAMES[cells.state[cell] & STATE_BITS]}${violated}, Δ ${formatNumber(deltaAt(cells, cell))}`;
}

export const layer: View = {
  component: LayerView,
  css: [layerStyles, inspectorStyles].join("\n"),
  steps() {
    const [run, own] = [activeRun.value, activeLayer.value];
    return (run && own && cellsOf(run.name, own.id).value?.steps) ?? viewedSteps.value;
  },
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
  files() {
    const own = activeRun.value;
    const list = own ? [own, ...shownRuns.value.filter((run) => run.name !== own.name)] : shownRuns.value;
    return runFiles(list, activeLayer.value?.id ?? null);
  },
};
