/** The Findings view as the frame knows it. */

import { toCsv } from "../../data/overlap";
import { openFinding, shownFindings } from "../../state/findings";
import { stepRun } from "../../state/navigate";
import { activeLayer, shownRuns, viewedSteps } from "../../state/runs";
import { focusFinding, page } from "../../state/store";
import css from "../../style/findings.css";
import type { View } from "../view";
import { FindingsView } from "./findings";

export const findings: View = {
  component: FindingsView,
  css,
  steps: () => viewedSteps.value,
  layer: () => activeLayer.value?.id ?? null,
  keys: {
    layer(by) {
      const list = shownFindings.value;
      focusFinding.value = Math.min(list.length - 1, Math.max(0, focusFinding.value + by));
    },
    run: (by) => stepRun(shownRuns.value, page.peek().run, by),
    down() {
      const finding = shownFindings.value[focusFinding.value];
      if (finding) openFinding(finding);
    },
    up() {
      focusFinding.value = -1;
      return true;
    },
  },
  speak() {
    const finding = shownFindings.value[focusFinding.value];
    return finding ? `${finding.run ?? "All runs"}: ${finding.text}` : "";
  },
  caption: () => "Findings",
  files() {
    if (shownFindings.value.length === 0) return [];
    const lines = () =>
      shownFindings.value.map(({ link: _link, layers, ...rest }) => ({ ...rest, layers: layers.join(" ") }));
    return [{ title: "CSV of the findings", name: ["findings"], source: () => toCsv(lines()) }];
  },
};
