/** What a place's numbers read: at the pointer, in labels and in the live region. */

import { formatCount, formatNumber } from "../../data/format";
import { CHANGE_TITLES, changeAt, formatChange, probedAt } from "../../data/function";
import { CHANGES } from "../../data/urlstate";
import { sharesText, stepsText } from "../../parts/words";
import { figuresAt } from "../../state/at";
import { activeChange, activePlace, layerOfPlace, type Probed, type Spot } from "../../state/probed";

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

/** Lines of the tooltip: all that a run tells of a place at a step. */
export function placeTip(entry: Probed, own: Spot, step: number): string[] {
  const { run, series } = entry;
  const record = probedAt(series, step);
  const layer = layerOfPlace(own);
  const figures = record < 0 || layer === null ? null : figuresAt(run, [layer], series.steps[record]);
  const where =
    record < 0
      ? "no record yet"
      : `step ${formatCount(series.steps[record])} against step ${formatCount(series.pastSteps[record])}`;
  return [
    placeText(own),
    `${run.name} · ${where}`,
    ...CHANGES.map((change) => `${CHANGE_TITLES[change]}: ${valueText(entry, own, step, change)}`),
    ...(figures
      ? [
          `Weights at ${stepsText(figures)}: mean Δ of moving ${formatNumber(figures.meanDelta)}; ${sharesText(figures)}`,
        ]
      : []),
  ];
}
