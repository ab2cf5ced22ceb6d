/** What stands under and in place of the difference: its legend, or why channels can't be matched. */

import { figuresAt } from "../../data/cells";
import { BOTH, NEITHER, ONLY_A, ONLY_B } from "../../data/difference";
import { formatCount } from "../../data/format";
import type { Overlapped } from "../../data/overlap";
import { bothColor, lineColor } from "../../draw/difference";
import { Gradient } from "../../parts/widgets";
import { sameOrigin } from "../../state/baseline";
import { numberSteps } from "../../state/followers";
import { shareText } from "../../state/overlaps";
import { maskKind, theme } from "../../state/store";
import type { Sides } from "./sides";

/** The classes in words, and how many channels are in each at a step. */
function classesAt({ pair: [a, b], third }: Sides, step: number): [string, string][] {
  const counts = third && figuresAt(third, step)?.counts;
  const [alive, gone] = maskKind.value === "kept" ? ["remaining", "pruned"] : ["trainable", "held"];
  const texts = [`${alive} in both`, `only ${a.name}`, `only ${b.name}`, `${gone} in both`];
  return [BOTH, ONLY_A, ONLY_B, NEITHER].map((kind, i) => [texts[i], counts ? formatCount(counts[kind]) : "–"]);
}

export const classTexts = (sides: Sides, step: number): string[] =>
  classesAt(sides, step).map(([text, count]) => `${text} ${count}`);

export function Legend(sides: Sides) {
  const { pair, third, moves } = sides;
  if (!third) return null;
  if (moves) {
    return (
      <div class="side-legend">
        <span>
          B moves less ÷10 <Gradient stops={theme.value.diverging} /> ×10 more
        </span>
        <span class="sub">another colour: the state that B is in, and A isn't</span>
      </div>
    );
  }
  const [a, b] = pair.map((run) => run.color);
  const lined = `repeating-linear-gradient(45deg, ${b} 0 4.6px, ${lineColor(theme.value, b)} 4.6px 5.6px)`;
  return (
    <div class="side-legend">
      {classesAt(sides, numberSteps[1].value).map(([text, count], i) => (
        <span key={text}>
          <i
            class="swatch fill-pruned"
            style={i < 3 ? { background: [bothColor(theme.value), a, lined][i] } : undefined}
          />
          <bdi>{text}</bdi> <b>{count}</b>
        </span>
      ))}
    </div>
  );
}

/** In place of the difference. */
export function Apart({ sides: { pair, cells }, own }: { sides: Sides; own: Overlapped | null }) {
  const [a, b] = pair;
  if (sameOrigin(a, b)) {
    const differ = cells[0] && cells[1] && cells[0].channels !== cells[1].channels;
    return differ ? <p class="message">The layers have different numbers of channels: they can't be matched.</p> : null;
  }
  const points = own ? (100 * (own.otherKept - own.kept)) / own.elements : Number.NaN;
  return (
    <div class="apart">
      <p>
        <b>Channels can't be matched one to one.</b>
      </p>
      <p>
        {a.name} and {b.name} aren't known to have started from the same weights, so channel 7 of one has nothing to do
        with channel 7 of the other.
      </p>
      <p>
        Runs share their origin when they begin from the same weights: set the seed before the model is made (
        <code>keras.utils.set_random_seed(0)</code>), load the same weights before recording, or go on from a checkpoint
        or a snapshot of one run.
      </p>
      {own ? (
        <p>
          {maskKind.value === "kept" ? "Kept" : "Trainable"} in this layer: {a.name}{" "}
          <b>{shareText(own.kept, own.elements)}</b>, {b.name} <b>{shareText(own.otherKept, own.elements)}</b>
          {Number.isNaN(points) ? "" : `, ${points < 0 ? "−" : "+"}${Math.abs(points).toFixed(1)} pp`}.
        </p>
      ) : null}
    </div>
  );
}
