/** What stands beside the heatmap: segments of rows on the left, marks of violations on the right. */

import { useMemo } from "preact/hooks";
import type { Cells } from "../model/cells";
import { formatCount } from "../model/format";
import { segmentsOf } from "../model/sort";
import { STATE_NAMES } from "../model/states";
import { Icon } from "./bits";
import { cellSummary } from "./data";
import { order, update } from "./store";

interface Props {
  cells: Cells;
  rows: Uint32Array;
  height: number;
}

/** What the segments of rows are, on the left of the heatmap. */
export function Gutter({ cells, rows, height }: Props) {
  const summary = cellSummary(cells);
  const segments = useMemo(() => segmentsOf(summary, rows, order.value), [summary, rows, order.value]);
  const at = (row: number) => (row / rows.length) * height;
  if (segments.length === 0) {
    return order.value === "index" ? (
      <>
        <span class="gutter-label" style={{ top: "8px" }}>
          0
        </span>
        <span class="gutter-label" style={{ top: `${height - 8}px` }}>
          {formatCount(rows.length - 1)}
        </span>
      </>
    ) : null;
  }
  return (
    <>
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
  const { firstViolated } = cellSummary(cells);
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
          aria-label={`Channel ${mark.channel} moved although held, first at step ${formatCount(cells.steps[firstViolated[mark.channel]])}`}
          title={`Channel ${mark.channel} moved although held, first at step ${formatCount(cells.steps[firstViolated[mark.channel]])}`}
          onClick={() => update({ channel: mark.channel, step: cells.steps[firstViolated[mark.channel]] })}
        >
          <Icon name="warning" size={12} />
        </button>
      ))}
    </>
  );
}
