/** The channels of a layer as a table, at the cursor. */

import type { Cells } from "../../data/cells";
import { deltaAt, recordAt, summarise } from "../../data/cells";
import { formatCount, formatNumber } from "../../data/format";
import { STATE_BITS, STATE_NAMES, VIOLATED } from "../../data/states";
import { DataTable } from "../../parts/widgets";
import { baseCell } from "../../state/baseline";
import { cursor } from "../../state/cursor";
import type { Run } from "../../state/runs";

interface Props {
  run: Run;
  layer: string;
  cells: Cells;
  /** The channels to list. */
  rows: Uint32Array;
  /** The baseline, where differences to it are shown. */
  base: Run | null;
}

export function LayerTable({ run, layer, cells, rows, base }: Props) {
  const summary = summarise(cells);
  const record = recordAt(cells, cursor.value);
  const stepOf = (t: number) => (t >= 0 && t < cells.records ? formatCount(cells.steps[t]) : "–");
  const against = (channel: number): string[] => {
    const found = base && baseCell(base, layer, channel, cursor.value);
    if (!found) return ["–", "–", "–"];
    const own = record < 0 ? Number.NaN : deltaAt(cells, channel * cells.records + record);
    return [STATE_NAMES[found.state], formatNumber(found.delta), found.times(own)];
  };
  return (
    <DataTable
      caption={`Channels of ${layer} in ${run.name} at step ${formatCount(cursor.value)}`}
      columns={[
        { title: "Channel" },
        { title: "State", text: true },
        { title: "Relative Δ" },
        { title: "Last moved" },
        { title: "First frozen or pruned" },
        { title: "Violated", text: true },
        ...(base
          ? [{ title: `State in ${base.name}`, text: true }, { title: `Δ in ${base.name}` }, { title: "Times its Δ" }]
          : []),
      ]}
      rows={Array.from(rows, (c) => {
        const at = c * cells.records + record;
        return [
          c,
          record < 0 ? "–" : STATE_NAMES[cells.state[at] & STATE_BITS],
          record < 0 ? "–" : formatNumber(deltaAt(cells, at)),
          stepOf(summary.lastMoved[c]),
          stepOf(summary.firstHeld[c]),
          summary.firstViolated[c] < 0
            ? ""
            : `from step ${stepOf(summary.firstViolated[c])}${record >= 0 && cells.state[at] & VIOLATED ? ", now" : ""}`,
          ...(base ? against(c) : []),
        ];
      })}
    />
  );
}
