/** The pointer over small panels that share the axis of steps. */

import { toStep } from "../data/scale";
import { setStep } from "../state/cursor";
import { scaleOf } from "../state/runs";
import { hover } from "../state/store";

/** Handlers that read at the step under the pointer, and set it on a click. */
export const stepPointer = (width: number) => {
  const stepAt = (event: MouseEvent) => {
    const left = (event.currentTarget as HTMLElement).getBoundingClientRect().left;
    return Math.floor(toStep(scaleOf(width), Math.min(width - 0.01, Math.max(0, event.clientX - left))));
  };
  return {
    onPointerMove: (event: PointerEvent) => {
      hover.value = { step: stepAt(event), run: null, row: null, channel: null, x: 0, y: 0 };
    },
    onPointerLeave: () => {
      hover.value = null;
    },
    onClick: (event: MouseEvent) => setStep(stepAt(event)),
  };
};
