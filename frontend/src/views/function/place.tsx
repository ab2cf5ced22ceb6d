/** A place of the Function view in words, and the panels that show places. */

import type { ComponentChildren } from "preact";
import { ABSENT } from "../../data/absent";
import { formatCount, formatNumber } from "../../data/format";
import { CHANGE_TITLES, changeAt, formatChange, probedAt } from "../../data/function";
import { CHANGES } from "../../data/urlstate";
import { TableButton } from "../../parts/widgets";
import { sharesText, stepsText } from "../../parts/words";
import { blockAt, figuresAt } from "../../state/at";
import { activeChange, activePlace, layerOfPlace, type Probed, type Spot } from "../../state/probed";
import { insteadText } from "../../state/resource";
import { tables } from "../../state/store";

export const placeText = (own: Spot): string => (own.kind === "layer" ? own.name : `${own.kind} ${own.name}`);

/** A place's value in a run at a step. */
export function valueText({ series }: Probed, own: Spot, step: number, change = activeChange.value): string {
  return formatChange(changeAt(series, change, own.id, step), change);
}

/** "dense at step 1,680: output head 5.0×10⁻⁴, relative" */
export function functionText(entry: Probed | null, step: number): string {
  const own = activePlace.value;
  if (!own || !entry) return "";
  return `${entry.run.name} at step ${formatCount(step)}: ${placeText(own)} ${valueText(entry, own, step)}, ${CHANGE_TITLES[activeChange.value].toLowerCase()}`;
}

/** Lines of the tooltip: a place of a run at a step. */
export function placeTip(entry: Probed, own: Spot, step: number): string[] {
  const { run, series } = entry;
  const record = probedAt(series, step);
  const layer = layerOfPlace(own);
  const answer = record < 0 || layer === null ? null : blockAt(run, series.steps[record]);
  const lacking = answer && !answer.value ? answer : null;
  const figures = answer && layer !== null ? figuresAt(run, [layer], series.steps[record]) : null;
  const where =
    record < 0
      ? ABSENT.record
      : `step ${formatCount(series.steps[record])} against step ${formatCount(series.pastSteps[record])}`;
  const weights = figures && `mean Δ of moving ${formatNumber(figures.meanDelta)}; ${sharesText(figures)}`;
  return [
    placeText(own),
    `${run.name} · ${where}`,
    ...CHANGES.map((change) => `${CHANGE_TITLES[change]}: ${valueText(entry, own, step, change)}`),
    ...(lacking ? [`Weights: ${insteadText(lacking)}`] : []),
    ...(figures ? [`Weights at ${stepsText(figures)}: ${weights}`] : []),
  ];
}

interface PanelProps {
  /** Part of its class, and the name of its table. */
  name: string;
  title: string;
  /** Next to the title. */
  head: ComponentChildren;
  table: () => ComponentChildren;
  children: ComponentChildren;
}

/** A panel: its head, and its picture or its table. */
export function FunctionPanel({ name, title, head, table, children }: PanelProps) {
  const panel = `function-${name}`;
  return (
    <section class={`panel fn-panel fn-${name}`} aria-label={title}>
      <header>
        <h2>{title}</h2>
        {head}
        <TableButton panel={panel} what={`“${title}”`} />
      </header>
      {tables.value.has(panel) ? table() : children}
    </section>
  );
}
