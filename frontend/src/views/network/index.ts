/** The Network view as the frame knows it. */

import { formatCount } from "../../data/format";
import { asideText, sharesText } from "../../parts/words";
import { figuresAt } from "../../state/at";
import { baselineDiffText, baseOf } from "../../state/baseline";
import { cursor } from "../../state/cursor";
import { openLayer, stepRun, toggleGroup } from "../../state/navigate";
import { rows } from "../../state/rows";
import { activeLayer, layers, shownRuns, viewedSteps } from "../../state/runs";
import { focusRow, page } from "../../state/store";
import css from "../../style/network.css";
import type { View } from "../view";
import { runFiles } from "../view";
import { NetworkView } from "./network";

function speak(): string {
  const run = shownRuns.value.find(({ name }) => name === page.value.run) ?? shownRuns.value[0];
  const row = rows.value.find(({ kind, id }) => kind !== "total" && id === focusRow.value) ?? rows.value[0];
  if (!run || !row) return "";
  const base = baseOf(run);
  const figures = figuresAt(run, row.layers, cursor.value);
  const difference = base ? `${baselineDiffText(run, base, row.layers)}. ` : "";
  const what = row.kind === "total" ? row.label : row.id;
  return `Step ${formatCount(cursor.value)}, ${run.name}, ${what}: ${difference}${sharesText(figures)}${asideText(figures, cursor.value)}`;
}

export const network: View = {
  component: NetworkView,
  css,
  steps: () => viewedSteps.value,
  layer: () => layers.value.find(({ id }) => id === focusRow.value)?.id ?? activeLayer.value?.id ?? null,
  keys: {
    layer(by) {
      const walk = rows.value.filter((row) => row.kind !== "total");
      const place = walk.findIndex((row) => row.id === focusRow.value);
      const next = walk[Math.min(walk.length - 1, Math.max(0, place + by))];
      if (next) focusRow.value = next.id;
    },
    run: (by) => stepRun(shownRuns.value, page.peek().run, by),
    down() {
      const row = rows.value.find(({ kind, id }) => kind !== "total" && id === focusRow.value);
      if (row?.kind === "group") toggleGroup(row.id);
      else if (row?.kind === "layer") openLayer(row.id, null);
    },
    up() {
      focusRow.value = null;
      return true;
    },
  },
  speak,
  caption: () => "Network",
  files: () => runFiles(shownRuns.value, null),
};
