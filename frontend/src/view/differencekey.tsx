/** What stands under and in place of the difference: its legend, or why channels can't be matched. */

import { bothColor, lineColor } from "../draw/difference";
import { blend } from "../draw/palette";
import { countsAt, DECADES } from "../model/difference";
import { formatCount, formatFineShare, formatNumber } from "../model/format";
import type { Lap } from "../model/overlap";
import { sameOrigin } from "./comparedata";
import { readStep } from "./cursor";
import { threshold } from "./data";
import type { Sides } from "./sidebyside";
import { maskKind, theme } from "./store";

function SignedLegend() {
  const stops = [0, 0.25, 0.5, 0.75, 1].map((at) => blend(theme.value.diverging, at)).join(", ");
  return (
    <div class="side-legend">
      <span>B moves less</span> −{DECADES}
      <i class="gradient" style={{ background: `linear-gradient(to right, ${stops})` }} />+{DECADES} decades{" "}
      <span>B moves more</span>
      <span class="sub">Δ under {formatNumber(threshold.value)} counts as that</span>
    </div>
  );
}

/** The classes with the channels of each at the cursor. */
export function Legend({ pair: [a, b], classes, moves }: Sides) {
  if (!classes) return null;
  if (moves) return <SignedLegend />;
  const counts = countsAt(classes, readStep.value);
  const lines = `repeating-linear-gradient(45deg, ${b.color} 0 4.6px, ${lineColor(theme.value, b.color)} 4.6px 5.6px)`;
  const [alive, gone] = maskKind.value === "kept" ? ["alive", "pruned"] : ["trainable", "held"];
  const entries = [
    { text: `${alive} in both`, style: { background: bothColor(theme.value) } },
    { text: `only ${a.name}`, style: { background: a.color } },
    { text: `only ${b.name}`, style: { background: lines } },
    { text: `${gone} in both`, style: undefined },
  ];
  return (
    <div class="side-legend">
      {entries.map(({ text, style }, i) => (
        <span key={text}>
          <i class={`swatch ${style ? "fill-own" : "fill-pruned"}`} style={style} />
          <bdi>{text}</bdi> <b>{counts ? formatCount(counts[i + 1]) : "–"}</b>
        </span>
      ))}
    </div>
  );
}

/** In place of the difference. */
export function Apart({ sides: { pair, cells, matched }, lap }: { sides: Sides; lap: Lap | null }) {
  const [a, b] = pair;
  if (matched) return null;
  if (sameOrigin(pair)) {
    const shown = cells[0] && cells[1];
    return shown ? <p class="message">The layers have different numbers of channels: they can't be matched.</p> : null;
  }
  const shares = lap && [lap.kept, lap.otherKept].map((kept) => formatFineShare(kept, lap.elements));
  const points = lap && (100 * (lap.otherKept - lap.kept)) / lap.elements;
  return (
    <div class="apart">
      <p>
        <b>Channels can't be matched one to one.</b>
      </p>
      <p>
        {a.name} and {b.name} began from other initial weights: channel 7 of one has nothing to do with channel 7 of the
        other, and an overlap of their masks would mean nothing.
      </p>
      <p>
        Runs share their origin when they begin from the same weights: set the seed before the model is made (
        <code>keras.utils.set_random_seed(0)</code>), load the same weights before recording, or go on from a checkpoint
        or a snapshot of one run.
      </p>
      {shares && points !== null && !Number.isNaN(points) ? (
        <dl>
          <dt>{maskKind.value === "kept" ? "Kept" : "Trainable"} in this layer</dt>
          {shares.map((share, i) => (
            <dd key={pair[i].name}>
              <bdi>{pair[i].name}</bdi> <b>{share}</b>
            </dd>
          ))}
          <dd>
            difference <b>{`${points < 0 ? "−" : "+"}${Math.abs(points).toFixed(1)}`} points</b>
          </dd>
        </dl>
      ) : null}
    </div>
  );
}
