/** One run's column: its words and its pointer; the strips of all columns are one picture. */

import { formatCount } from "../../model/format";
import { sumOf } from "../../model/overview";
import { toStep } from "../../model/scale";
import { columnAt, readAt } from "../../model/series";
import { Failure } from "../shared/bits";
import { startDrag } from "../shared/drag";
import { sharesText } from "../shared/words";
import { openLayer } from "../state/actions";
import { against, apartText } from "../state/baseline";
import { setStep } from "../state/cursor";
import { overviewOf, type Run, scaleOf } from "../state/data";
import { finestOf, overviewAt } from "../state/detail";
import { spokenStep } from "../state/followers";
import { inSight } from "../state/sight";
import { focusRow, hover, update } from "../state/store";
import { type Layout, placeAt } from "./geometry";
import { stripsOf } from "./strips";

/** What the strips of the column show, once they do. */
function Words({ run, width }: { run: Run; width: number }) {
  const { value, error } = overviewOf(run.name);
  if (!value) return error ? <Failure text={error} /> : null;
  if (!stripsOf(run)) return null;
  const read = overviewAt(run.name, spokenStep.value);
  const total = read && sumOf(read, read.layers);
  const values = sharesText(total ? readAt(total, spokenStep.value) : null);
  const base = against(run);
  const apart = base ? `${apartText(run, base)}. ` : "";
  const label = `${run.name} at step ${formatCount(spokenStep.value)}: ${apart}${values}`;
  return <div class="strips-label" role="img" aria-label={label} style={{ width: `${width}px` }} />;
}

/** The step of the run's record that is in force at a place of the axis; a whole step where there is none. */
function snap(run: Run, step: number): number {
  const overview = finestOf(run.name);
  const column = overview ? columnAt(overview, step) : -1;
  return overview && column >= 0 ? overview.starts[column] : Math.floor(step);
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
    return { step: snap(run, toStep(scaleOf(width), x)), place: placeAt(layout, event.clientY - box.top) };
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
