/** One run's column: its words, its pointer and the outline of a row in it; the strips of all columns are one picture. */

import { GAP, type Layout, NAME_WIDTH, placeAt } from "../../data/rowbox";
import { startDrag, stepPointer } from "../../parts/plot";
import { Failure, movedTo } from "../../parts/widgets";
import { sharesText, stepsText, stepText } from "../../parts/words";
import { overviewOf } from "../../state/answers";
import { figuresAt, recordStep } from "../../state/at";
import { baselineDiffText, baseOf } from "../../state/baseline";
import { spokenStep } from "../../state/followers";
import { openLayer } from "../../state/navigate";
import { type Run, shownRuns, totalLayers } from "../../state/runs";
import { focusRow, hover, runName, update } from "../../state/store";
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
  const pointer = stepPointer(width, (pointed, y) => {
    const step = recordStep(run, pointed);
    const row = placeAt(layout, y)?.row;
    if (!row) return { step, silent: true };
    return {
      step,
      run: run.name,
      row: row.id,
      pick() {
        if (row.kind === "total") return;
        focusRow.value = row.id;
        update({ run: run.name });
      },
      open: () => row.kind === "layer" && openLayer(row.id, run.name),
    };
  });
  return (
    <div class="run-column" {...pointer} onPointerDown={(event) => startDrag(event, width)}>
      {inSight(run.name) ? <Words run={run} width={width} /> : null}
    </div>
  );
}

interface OutlineProps {
  layout: Layout;
  /** The width of a column. */
  column: number;
}

function Outline({ layout, column, run, row }: OutlineProps & { run: string | null; row: string | null }) {
  const place = shownRuns.value.findIndex(({ name }) => name === run);
  const rowBox = layout.places.find((other) => other.row.id === row && (other.row.kind === "total") === (row === ""));
  if (run === null || !rowBox || place < 0 || !inSight(run)) return null;
  const moved = movedTo(NAME_WIDTH + place * column, rowBox.stripTop - 2);
  const style = { width: `${column - GAP + 4}px`, height: `${rowBox.stripHeight + 4}px` };
  return <div ref={moved} class="outline" style={style} />;
}

/** Around the rows that the pointer and the keyboard are on: the pointer's, and the keyboard's where that is in another column. */
export function Outlines(props: OutlineProps) {
  const { run = null, row = null } = hover.value ?? {};
  const chosen = row !== null && run === runName.value ? null : runName.value;
  return (
    <>
      <Outline {...props} run={chosen} row={focusRow.value} />
      <Outline {...props} run={run} row={row} />
    </>
  );
}
