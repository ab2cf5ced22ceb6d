/** Flags above the strip: changes of the trainable mask, of the learning rate, and restarts. */

import type { Cells } from "../model/cells";
import { formatCount } from "../model/format";
import { toPixel } from "../model/scale";
import type { LayerEvent } from "../wire/types";
import { setStep } from "./cursor";
import { scaleOf } from "./data";

const CHARACTER = 5.6;

/** Flags from left to right; a label that would cover the one before is left out, its tick stays. */
function place(events: readonly LayerEvent[], width: number) {
  const scale = scaleOf(width);
  let right = Number.NEGATIVE_INFINITY;
  return [...events]
    .sort((a, b) => a.step - b.step)
    .map((event) => ({ event, x: toPixel(scale, event.step) }))
    .filter(({ x }) => x >= 0 && x <= width)
    .map(({ event, x }) => {
      const text = event.text.length > 26 ? `${event.text.slice(0, 25)}…` : event.text;
      const half = (text.length * CHARACTER) / 2 + 3;
      const middle = Math.min(Math.max(x, half), width - half);
      const labelled = middle - half > right;
      if (labelled) right = middle + half;
      return { event, x, middle, text: labelled ? text : null };
    });
}

export function Flags({ cells, width }: { cells: Cells; width: number }) {
  return (
    <div class="flags" style={{ width: `${width}px` }}>
      {place(cells.header.events, width).map(({ event, x, middle, text }) => (
        <div key={`${event.step} ${event.kind} ${event.text}`}>
          <i
            class={`flag ${event.kind}`}
            style={{ left: `${x}px` }}
            title={`step ${formatCount(event.step)}: ${event.text}`}
          />
          {text !== null ? (
            <button
              type="button"
              class="plain flag-text"
              style={{ left: `${middle}px` }}
              title={`step ${formatCount(event.step)}: ${event.text}`}
              onClick={() => setStep(event.step)}
            >
              {text}
            </button>
          ) : null}
        </div>
      ))}
    </div>
  );
}
