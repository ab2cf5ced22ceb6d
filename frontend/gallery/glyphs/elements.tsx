/** Pieces of the page that are no canvas: swatches, markers, icons and flags. */

import { STATE_NAMES } from "../../src/data/states";
import { overlapStyle } from "../../src/draw/difference";
import { runColor } from "../../src/draw/theme";
import { Icon, Marker } from "../../src/parts/widgets";
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
    name: "overlap-cells",
    width: 112,
    height: 24,
    element: (theme) => (
      <div style={{ display: "flex", gap: "2px", padding: "2px" }}>
        {[0, 0.2, 0.4, 0.6, 0.8, 1].map((value) => {
          const { background, color } = overlapStyle(theme, value);
          return (
            <i key={value} style={{ background, width: "16px", height: "20px", padding: "8px 4px" }}>
              <i style={{ background: color, display: "block", height: "4px" }} />
            </i>
          );
        })}
      </div>
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
