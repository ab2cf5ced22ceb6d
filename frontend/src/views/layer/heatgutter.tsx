/** What stands beside the heatmap: segments of rows on the left, marks of violations on the right. */

import { useMemo } from "preact/hooks";
import type { Cells } from "../../data/cells";
import { summarise } from "../../data/cells";
import { formatCount } from "../../data/format";
import { segmentsOf } from "../../data/sort";
import { STATE_NAMES } from "../../data/states";
import { Icon } from "../../parts/widgets";
import { order, rowsOf, update } from "../../state/store";

interface Props {
  cells: Cells;
  rows: Uint32Array;
  height: number;
}

/** Rows of at least this height have their channel's number beside them. */
const NUMBERED = 11;

/** The channel of each row where there is room; else the first and the last in the order of channels. */
function Numbers({ rows, height }: { rows: Uint32Array; height: number }) {
  const each = height / rows.length;
  const numbered = each >= NUMBERED;
  if (!numbered && order.value !== "index") return null;
  const shown = numbered ? Array.from(rows.keys()) : [0, rows.length - 1];
  return (
    <>
      {shown.map((row) => (
        <span
          key={row}
          class="gutter-number"
          style={{ top: `${Math.min(Math.max((row + 0.5) * each, 8), height - 8)}px` }}
        >
          {formatCount(rows[row])}
        </span>
      ))}
    </>
  );
}

/** What the rows are, on the left of the heatmap: channels, or segments of one state. */
export function Gutter({ cells, rows, height }: Props) {
  const summary = summarise(cells);
  // In the order of another run, this one's states lie in pieces.
  const own = rowsOf.value === null || rowsOf.value === cells.header.run;
  const segments = useMemo(
    () => (own ? segmentsOf(summary, rows, order.value) : []),
    [summary, rows, order.value, own],
  );
  const at = (row: number) => (row / rows.length) * height;
  return (
    <>
      <Numbers rows={rows} height={height} />
      {segments.map((segment) => (
        <div key={segment.from}>
          {segment.from > 0 ? <i class="gutter-tick" style={{ top: `${at(segment.from)}px` }} /> : null}
          {at(segment.to) - at(segment.from) >= 26 ? (
            <span class="gutter-label" style={{ top: `${(at(segment.from) + at(segment.to)) / 2}px` }}>
              {formatCount(segment.to - segment.from)}
              <br />
              {STATE_NAMES[segment.state]}
            </span>
          ) : null}
        </div>
      ))}
    </>
  );
}

/** A mark beside each violated row, as far as they don't cover each other. */
export function Violations({ cells, rows, height }: Props) {
  const { firstViolated } = summarise(cells);
  const marks = useMemo(() => {
    const found: { y: number; channel: number }[] = [];
    rows.forEach((c, i) => {
      const y = ((i + 0.5) / rows.length) * height;
      if (firstViolated[c] >= 0 && y - (found[found.length - 1]?.y ?? -20) >= 24) found.push({ y, channel: c });
    });
    return found;
  }, [firstViolated, rows, height]);
  return (
    <>
      {marks.map((mark) => (
        <button
          key={mark.channel}
          type="button"
          class="violation-mark"
          style={{ top: `${mark.y}px` }}
          aria-label={`Channel ${mark.channel} violated since step ${formatCount(cells.steps[firstViolated[mark.channel]])}`}
          title={`Channel ${mark.channel} violated since step ${formatCount(cells.steps[firstViolated[mark.channel]])}`}
          onClick={() => update({ channel: mark.channel, step: cells.steps[firstViolated[mark.channel]] })}
        >
          <Icon name="warning" size={12} />
        </button>
      ))}
    </>
  );
}
