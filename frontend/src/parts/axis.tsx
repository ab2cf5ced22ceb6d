/** Round ticks under a picture over steps, and the cursor's step as a pill. */

import { formatCount, formatShort } from "../data/format";
import { type Scale, stepTicks, toPixel } from "../data/scale";
import { readStep } from "../state/cursor";
import { axisZooms, headPart } from "../state/followers";
import { fullRange } from "../state/runs";
import { movedTo } from "./widgets";

const LETTER = 6.2;

/** Ticks that don't cover each other, each with the middle of its label. */
function placeTicks(ticks: readonly number[], scale: Scale) {
  let right = Number.NEGATIVE_INFINITY;
  return ticks.flatMap((tick) => {
    const half = (formatShort(tick).length * LETTER) / 2;
    const middle = Math.min(Math.max(toPixel(scale, tick), half), scale.width - half);
    if (middle - half < right + 3) return [];
    right = middle + half;
    return [{ tick, middle, half }];
  });
}

interface AxisProps {
  width: number;
  pill: boolean;
  /** Of ticks, about. */
  count?: number;
  /** Among others that are beside it. */
  place?: number;
}

export function Axis({ width, pill, count, place = 0 }: AxisProps) {
  const [from, to] = headPart(axisZooms, place).value ?? fullRange.value;
  const scale = { from, to, width };
  // Without a pill nothing of it depends on the step under the pointer.
  const at = pill ? toPixel(scale, readStep.value) : -1;
  const text = pill ? formatCount(readStep.value) : "";
  const half = (text.length * LETTER) / 2 + 8;
  const middle = Math.min(Math.max(at, half), width - half + 6);
  const inside = at >= 0 && at <= width;
  const ticks = stepTicks(from, to, count ?? Math.max(2, Math.floor(width / 33)));
  return (
    <div class="axis" style={{ width: `${width}px` }} aria-hidden="true">
      {placeTicks(ticks, scale).map((one) => {
        const covered = inside && Math.abs(one.middle - middle) < one.half + half;
        return (
          <span key={one.tick} class={covered ? "tick covered" : "tick"} style={{ left: `${one.middle}px` }}>
            {formatShort(one.tick)}
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
