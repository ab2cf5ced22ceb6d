/** Flags above the strip: changes of the trainable mask, of the learning rate, and restarts. */

import type { Cells } from "../../data/cells";
import { flagText } from "../../data/events";
import { formatCount } from "../../data/format";
import { toPixel } from "../../data/scale";
import type { LayerEvent } from "../../server/types";
import { scaleOf } from "../../state/runs";

const CHARACTER = 5.2;

/** Flags from left to right; a label that would cover the one before is left out, its tick stays. */
function place(events: readonly LayerEvent[], width: number) {
  const scale = scaleOf(width);
  let right = Number.NEGATIVE_INFINITY;
  return [...events]
    .sort((a, b) => a.step - b.step)
    .map((event) => ({ event, x: toPixel(scale, event.step) }))
    .filter(({ x }) => x >= 0 && x <= width)
    .map(({ event, x }) => {
      const text = flagText(event);
      const half = (text.length * CHARACTER) / 2 + 3;
      const middle = Math.min(Math.max(x, half), width - half);
      const labelled = middle - half > right;
      if (labelled) right = middle + half;
      return { event, x, middle, text: labelled ? text : null };
    });
}

export function Flags({ cells, width }: { cells: Cells; width: number }) {
  const { events } = cells.header;
  return (
    <div class="flags" style={{ width: `${width}px` }}>
      <ul class="offscreen" aria-label="Events">
        {events.map((event) => (
          <li key={`${event.step} ${event.kind} ${event.text}`}>
            step {formatCount(event.step)}: {event.text}
          </li>
        ))}
      </ul>
      {place(events, width).map(({ event, x, middle, text }) => {
        const whole = `step ${formatCount(event.step)}: ${event.text}`;
        return (
          <div key={whole} aria-hidden="true" title={whole}>
            <i class={`flag ${event.kind}`} style={{ left: `${x}px` }} />
            {text !== null ? (
              <span class="flag-text" style={{ left: `${middle}px` }}>
                {text}
              </span>
            ) : null}
          </div>
        );
      })}
    </div>
  );
}
