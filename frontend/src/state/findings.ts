/** The list of findings as it is shown: filtered by runs and layers, sorted. */

import { computed, signal } from "@preact/signals";
import { VIEW_NAMES } from "../data/urlstate";
import type { Finding } from "../server/types";
import { findingsOf } from "./answers";
import { layerIn, runNamed } from "./runs";
import { drill, layerFilter } from "./store";

/** As the server ranks them, what matters most first; or by one of their parts. */
export const FINDING_ORDERS = ["importance", "run", "step", "kind"] as const;
export type FindingOrder = (typeof FINDING_ORDERS)[number];
export const findingOrder = signal<FindingOrder>("importance");

const NAMES = new Intl.Collator("en", { numeric: true });

const COMPARE: Record<FindingOrder, (a: Finding, b: Finding) => number> = {
  importance: () => 0,
  run: (a, b) => NAMES.compare(a.run ?? "", b.run ?? ""),
  step: (a, b) => (a.step ?? Infinity) - (b.step ?? Infinity) || 0,
  kind: (a, b) => NAMES.compare(a.kind, b.kind),
};

export const shownFindings = computed<Finding[]>(() => {
  const { pattern } = layerFilter.value;
  const listed = (findingsOf().value?.findings ?? []).filter(
    ({ layers }) => !pattern || layers.length === 0 || layers.some((layer) => pattern.test(layer)),
  );
  return listed.sort(COMPARE[findingOrder.value]);
});

/** Shows the picture that a finding is seen in. */
export function openFinding({ link, run }: Finding): void {
  const own = runNamed(link.run ?? run);
  const view = VIEW_NAMES.find((name) => name === link.view) ?? "network";
  const layer = link.layer !== null && own && layerIn(own, link.layer) ? link.layer : null;
  drill({ view, run: own?.name ?? null, layer, channel: link.channel, step: link.step, variable: null, zoom: null });
}
