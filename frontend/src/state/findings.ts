/** The list of findings as it is shown: filtered by runs and layers, sorted. */

import { computed, signal } from "@preact/signals";
import { passes } from "../data/names";
import { VIEW_NAMES } from "../data/urlstate";
import type { Finding, FindingsAnswer } from "../server/types";
import { findingsOf, MOST_RUNS } from "./answers";
import type { Resource } from "./resource";
import { layerIn, runNamed, shownRuns } from "./runs";
import { drill, layerFilter } from "./store";

/** As the server ranks them, what does most harm first; or by one of their parts. */
export const FINDING_ORDERS = ["importance", "step", "kind"] as const;
export type FindingOrder = (typeof FINDING_ORDERS)[number];
export const findingOrder = signal<FindingOrder>("importance");

/** Lines that are shown before all are asked for. */
const SHOWN = 12;
export const allFindings = signal(false);

const NAMES = new Intl.Collator("en", { numeric: true });

const COMPARE: Record<FindingOrder, (a: Finding, b: Finding) => number> = {
  importance: () => 0,
  step: (a, b) => (a.first_step ?? Infinity) - (b.first_step ?? Infinity) || 0,
  kind: (a, b) => NAMES.compare(a.kind, b.kind),
};

/** Of all shown runs together; null without any. */
export const findingsAnswer = computed<Resource<FindingsAnswer> | null>(() => {
  const names = shownRuns.value.map(({ name }) => name);
  return names.length > 0 ? findingsOf(names) : null;
});

/** Shown runs that the findings leave out: there are too many. */
export const runsLeftOut = computed<number>(() => Math.max(0, shownRuns.value.length - MOST_RUNS));

/** Those that pass the filter of layers. */
export const listedFindings = computed<Finding[]>(() => {
  const passing = ({ layers }: Finding) => layers.length === 0 || layers.some((id) => passes(layerFilter.value, id));
  const findings = findingsAnswer.value?.value?.findings ?? [];
  return findings.filter(passing).sort(COMPARE[findingOrder.value]);
});

export const shownFindings = computed<Finding[]>(() =>
  allFindings.value ? listedFindings.value : listedFindings.value.slice(0, SHOWN),
);

/** Shows the picture that a finding is seen in. */
export function openFinding({ link }: Finding): void {
  const own = runNamed(link.run);
  const view = VIEW_NAMES.find((name) => name === link.view) ?? "network";
  const layer = link.layer !== null && own && layerIn(own, link.layer) ? link.layer : null;
  const { channel, step, variable = null } = link;
  drill({ view, run: own?.name ?? null, layer, channel, step, variable, zoom: null });
}
