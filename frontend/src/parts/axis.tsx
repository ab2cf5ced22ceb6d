/** Round ticks under a picture over steps, and the cursor's step as a pill. */

import { formatCount, formatShort } from "../data/format";
import { type Scale, stepTicks, toPixel } from "../data/scale";
import { readStep } from "../state/cursor";
import { axisZooms, headPart } from "../state/followers";
import { fullRange } from "../state/runs";
import { movedTo } from "./widgets";

/** The width of a letter, and the least between labels. */
const [LETTER, GAP] = [6.2, 8];

interface Label {
  tick: number;
  middle: number;
  half: number;
}

const apart = (one: Label, next: Label) => next.middle - next.half >= one.middle + one.half + GAP;

/** About `count` ticks with their labels, at one distance: fewer where they would cover each other. */
function placeTicks(scale: Scale, count: number): Label[] {
  const labels = stepTicks(scale.from, scale.to, count).map((tick) => {
    const half = (formatShort(tick).length * LETTER) / 2;
    return { tick, half, middle: Math.min(Math.max(toPixel(scale, tick), half), scale.width - half) };
  });
  // Those at the ends have moved inwards.
  if (labels.length > 2 && !apart(labels[0], labels[1])) labels.shift();
  if (labels.length > 2 && !apart(labels.at(-2)!, labels.at(-1)!)) labels.pop();
  const free = labels.every((label, i) => i === 0 || apart(labels[i - 1], label));
  return free || count < 2 ? labels.slice(0, free ? undefined : 1) : placeTicks(scale, count * 0.7);
}

/**
 * @param count of ticks, about.
 * @param place among others next to it.
 */
export function Axis(props: { width: number; pill: boolean; count?: number; place?: number }) {
  const { width, pill, count = Math.max(2, Math.floor(width / 33)), place = 0 } = props;
  const [from, to] = headPart(axisZooms, place).value ?? fullRange.value;
  const scale = { from, to, width };
  // Without a pill nothing of it depends on the step under the pointer.
  const x = pill ? toPixel(scale, readStep.value) : -1;
  const text = pill ? formatCount(readStep.value) : "";
  const half = (text.length * LETTER) / 2 + 8;
  const middle = Math.min(Math.max(x, half), width - half + 6);
  const inside = x >= 0 && x <= width;
  return (
    <div class="axis" style={{ width: `${width}px` }} aria-hidden="true">
      {placeTicks(scale, count).map((label) => {
        const covered = inside && Math.abs(label.middle - middle) < label.half + half;
        return (
          <span key={label.tick} class={covered ? "tick covered" : "tick"} style={{ left: `${label.middle}px` }}>
            {formatShort(label.tick)}
          </span>
        );
      })}
      {inside ? (
        <span ref={movedTo(middle, 0)} class="pill">
          <span>{text}</span>
        </span>
      ) : null}
    </div>
  );
}
