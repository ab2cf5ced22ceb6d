/** One run's column: its words and its pointer; the strips of all columns are one picture. */

import { type Layout, placeAt } from "../../data/rowbox";
import { toStep } from "../../data/scale";
import { startDrag } from "../../parts/drag";
import { Failure } from "../../parts/widgets";
import { sharesText, stepsText, stepText } from "../../parts/words";
import { overviewOf } from "../../state/answers";
import { figuresAt, recordStep } from "../../state/at";
import { baselineDiffText, baseOf } from "../../state/baseline";
import { setStep } from "../../state/cursor";
import { spokenStep } from "../../state/followers";
import { openLayer } from "../../state/navigate";
import { type Run, scaleOf, totalLayers } from "../../state/runs";
import { focusRow, hover, update } from "../../state/store";
import { inSight } from "../../state/viewport";
import { stripsOf } from "./strips";

/** What the strips of the column show, once they do. */
function Words({ run, width }: { run: Run; width: number }) {
  const { value, error } = overviewOf(run.name);
  if (!value) return error ? <Failure text={error} /> : null;
  if (!stripsOf(run)) return null;
  const figures = figuresAt(run, totalLayers.value, spokenStep.value);
  const base = baseOf(run);
  const apart = base ? `${baselineDiffText(run, base)}. ` : "";
  const label = `${run.name} at ${figures ? stepsText(figures) : stepText(spokenStep.value)}: ${apart}${sharesText(figures)}`;
  return <div class="strips-label" role="img" aria-label={label} style={{ width: `${width}px` }} />;
}

interface Props {
  run: Run;
  layout: Layout;
  width: number;
}

export function RunColumn({ run, layout, width }: Props) {
  const where = (event: MouseEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const x = Math.min(width - 0.01, Math.max(0, event.clientX - box.left));
    return { step: recordStep(run, toStep(scaleOf(width), x)), place: placeAt(layout, event.clientY - box.top) };
  };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the keys of the whole page do the same
    // biome-ignore lint/a11y/noStaticElementInteractions: the keys of the whole page do the same
    <div
      class="run-column"
      onPointerMove={(event) => {
        const { step, place } = where(event);
        hover.value = place
          ? { step, run: run.name, row: place.row.id, channel: null, x: event.clientX, y: event.clientY }
          : null;
      }}
      onPointerLeave={() => (hover.value = null)}
      onPointerDown={(event) => startDrag(event, width)}
      onClick={(event) => {
        if ((event.target as Element).closest("button")) return;
        const { step, place } = where(event);
        setStep(step);
        if (place && place.row.kind !== "total") {
          focusRow.value = place.row.id;
          update({ run: run.name });
        }
      }}
      onDblClick={(event) => {
        const { place } = where(event);
        if (place?.row.kind === "layer") openLayer(place.row.id, run.name);
      }}
    >
      {inSight(run.name) ? <Words run={run} width={width} /> : null}
    </div>
  );
}
