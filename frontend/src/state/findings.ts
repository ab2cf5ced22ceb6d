/** The list of findings as it is shown: filtered by runs and layers, sorted. */

import { computed, signal } from "@preact/signals";
import { passes } from "../data/names";
import { VIEW_NAMES } from "../data/urlstate";
import { FINDING_KINDS, type Finding, type FindingsAnswer } from "../server/types";
import { findingsOf } from "./answers";
import type { Resource } from "./resource";
import { layerIn, runNamed, shownRuns } from "./runs";
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

interface Answered {
  findings: Finding[];
  /** Runs whose findings are still to come. */
  waiting: number;
  /** Whether anything is, the comparison of the runs included. */
  pending: boolean;
  /** What they are from. */
  answers: (readonly [string, Resource<FindingsAnswer>])[];
}

const isPending = ({ value, error }: Resource<unknown>): boolean => !value && !error;

/** Runs of large logs take seconds each: they come one by one, and at last what compares them. */
export const answeredFindings = computed<Answered>(() => {
  const names = shownRuns.value.map(({ name }) => name);
  const each = names.map((name) => findingsOf([name]));
  const ready = each.filter(({ value }) => value);
  const whole = names.length > 1 && ready.length === names.length ? findingsOf(names) : null;
  if (whole?.value) return { findings: whole.value.findings, waiting: 0, pending: false, answers: [["", whole]] };
  const findings = ready.flatMap(({ value }) => value?.findings ?? []);
  // As the server ranks them.
  findings.sort((a, b) => FINDING_KINDS.indexOf(a.kind) - FINDING_KINDS.indexOf(b.kind));
  const answers = each.map((answer, i) => [names[i], answer] as const);
  const all = whole ? [...answers, ["the comparison of the runs", whole] as const] : answers;
  const pending = all.some(([, answer]) => isPending(answer));
  return { findings, waiting: each.filter(isPending).length, pending, answers: all };
});

/** Those that pass the filter of layers, each of its run. */
export const listedFindings = computed<Finding[]>(() => {
  const passing = ({ layers }: Finding) => layers.length === 0 || layers.some((id) => passes(layerFilter.value, id));
  return answeredFindings.value.findings.filter(passing).sort(COMPARE[findingOrder.value]);
});

/** What is the same in several runs is one line, unless they are sorted by run. */
export const shownFindings = computed<(Finding & { runs: string[] })[]>(() => {
  const lines = new Map<string, Finding & { runs: string[] }>();
  for (const finding of listedFindings.value) {
    const key = JSON.stringify([finding.kind, finding.text, finding.step, findingOrder.value === "run" && finding.run]);
    const line = lines.get(key) ?? { ...finding, runs: [] };
    lines.set(key, line);
    if (finding.run !== null) line.runs.push(finding.run);
  }
  return [...lines.values()];
});

/** Shows the picture that a finding is seen in. */
export function openFinding({ link, run }: Finding): void {
  const own = runNamed(link.run ?? run);
  const view = VIEW_NAMES.find((name) => name === link.view) ?? "network";
  const layer = link.layer !== null && own && layerIn(own, link.layer) ? link.layer : null;
  drill({ view, run: own?.name ?? null, layer, channel: link.channel, step: link.step, variable: null, zoom: null });
}
