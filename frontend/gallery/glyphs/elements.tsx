/** Pieces of the page that are no canvas: swatches, markers, icons and flags. */

import { runColor } from "../../src/draw/palette";
import { STATE_NAMES } from "../../src/model/states";
import { Icon, Marker } from "../../src/view/bits";
import type { ElementGlyph } from "./glyph";

export const elements: ElementGlyph[] = [
  {
    name: "legend-swatches",
    width: 40,
    height: 120,
    element: () => (
      <ul class="legend">
        {STATE_NAMES.map((state) => (
          <li key={state} style={{ height: "20px" }}>
            <i class={`swatch fill-${state.replace(" ", "-")}`} />
          </li>
        ))}
      </ul>
    ),
  },
  {
    name: "run-markers",
    width: 112,
    height: 20,
    element: ({ dark }) => (
      <div style={{ display: "flex", gap: "4px", padding: "4px" }}>
        {[0, 1, 2, 3, 4, 5, 6].map((run) => (
          <Marker key={run} color={runColor(run, dark)} shape={run} />
        ))}
      </div>
    ),
  },
  {
    name: "violated-icon",
    width: 24,
    height: 24,
    element: () => (
      <span class="warn" style={{ color: "var(--violated-text)" }}>
        <Icon name="warning" size={20} />
      </span>
    ),
  },
  {
    name: "flags",
    width: 80,
    height: 16,
    element: () => (
      <div class="flags">
        {["kept", "trainable", "learning_rate", "restart"].map((kind, at) => (
          <i key={kind} class={`flag ${kind}`} style={{ left: `${10 + 20 * at}px` }} />
        ))}
      </div>
    ),
  },
];
