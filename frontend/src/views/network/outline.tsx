/** Around the rows that the pointer and the keyboard are on. */

import { GAP, type Layout, NAME_WIDTH } from "../../data/rowbox";
import { movedTo } from "../../parts/moved";
import { shownRuns } from "../../state/runs";
import { focusRow, hover, runName } from "../../state/store";
import { inSight } from "../../state/viewport";

interface Props {
  layout: Layout;
  /** The width of a column. */
  column: number;
}

function Outline({ layout, column, run, row }: Props & { run: string | null; row: string | null }) {
  const at = shownRuns.value.findIndex(({ name }) => name === run);
  if (run === null || row === null || at < 0 || !inSight(run)) return null;
  const place = layout.places.find((one) => one.row.id === row && (one.row.kind === "total") === (row === ""));
  if (!place) return null;
  const moved = movedTo(NAME_WIDTH + at * column, place.stripTop - 2);
  const style = { width: `${column - GAP + 4}px`, height: `${place.stripHeight + 4}px` };
  return <div ref={moved} class="outline" style={style} />;
}

/** The pointer's, and the keyboard's where that is in another column. */
export function Outlines(props: Props) {
  const { run = null, row = null } = hover.value ?? {};
  const chosen = row !== null && run === runName.value ? null : runName.value;
  return (
    <>
      <Outline {...props} run={chosen} row={focusRow.value} />
      <Outline {...props} run={run} row={row} />
    </>
  );
}
