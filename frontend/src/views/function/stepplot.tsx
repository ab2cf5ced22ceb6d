/** A picture of the Function view on the axis of steps: its pointer, the crosshair and the box of the zoom. */

import type { ComponentChildren } from "preact";
import { toStep } from "../../data/scale";
import { Crosshair } from "../../parts/crosshair";
import { startDrag, ZoomBox } from "../../parts/drag";
import { setStep } from "../../state/cursor";
import { openLayer } from "../../state/navigate";
import { layerOfPlace, type Probed, type Spot } from "../../state/probed";
import { scaleOf } from "../../state/runs";
import { hover, update } from "../../state/store";
import { placeTip } from "./tip";

interface Props {
  width: number;
  height: number;
  /** The run that the picture is of, null for all. */
  entry: Probed | null;
  /** The step of a record at a place of the axis, and what lies at a height. */
  read: (step: number, y: number) => { step: number; own: Spot | null };
  children: ComponentChildren;
}

export function StepPlot({ width, height, entry, read, children }: Props) {
  const where = (event: MouseEvent) => {
    const { left, top } = (event.currentTarget as HTMLElement).getBoundingClientRect();
    return read(toStep(scaleOf(width), Math.min(width - 0.01, Math.max(0, event.clientX - left))), event.clientY - top);
  };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the keys of the whole page do the same
    // biome-ignore lint/a11y/noStaticElementInteractions: the keys of the whole page do the same
    <div
      class="fn-plot"
      style={{ width: `${width}px`, height: `${height}px` }}
      onPointerMove={(event) => {
        const { step, own } = where(event);
        const tip = entry && own ? placeTip(entry, own, step) : undefined;
        const at = { x: event.clientX, y: event.clientY, channel: null, run: null };
        hover.value = { ...at, step, row: own?.id ?? null, tip };
      }}
      onPointerLeave={() => (hover.value = null)}
      onPointerDown={(event) => startDrag(event, width)}
      onClick={(event) => {
        const { step, own } = where(event);
        setStep(step);
        if (own && entry) update({ place: own.id, run: entry.run.name });
      }}
      onDblClick={(event) => {
        const layer = layerOfPlace(where(event).own);
        if (layer !== null && entry) openLayer(layer, entry.run.name);
      }}
    >
      {children}
      <Crosshair width={width} />
      <ZoomBox width={width} />
    </div>
  );
}
