/** Pinned channels of the layer: they stay in the inspector, each as a barcode that can be selected or taken out. */

import type { Cells } from "../../data/cells";
import { deltaAt, recordAt } from "../../data/cells";
import { formatCount, formatNumber } from "../../data/format";
import { STATE_BITS, STATE_NAMES } from "../../data/states";
import { useSize } from "../../parts/canvas";
import { Crosshair } from "../../parts/crosshair";
import { stepPointer } from "../../parts/pointer";
import { Button, Icon } from "../../parts/widgets";
import { cursor } from "../../state/cursor";
import { numberSteps } from "../../state/followers";
import { togglePin } from "../../state/navigate";
import type { Run } from "../../state/runs";
import { pins, update } from "../../state/store";
import { Barcodes } from "./barcodes";

/** Those pinned channels that the layer has. */
export const pinsIn = (cells: Cells): number[] => pins.value.filter((pin) => pin < cells.channels);

export function PinButton({ channel }: { channel: number }) {
  const pinned = pins.value.includes(channel);
  return (
    <Button
      class="small under"
      pressed={pinned}
      label="Pin the channel (P)"
      title={pinned ? "Unpin (P)" : "Pin (P)"}
      onClick={() => togglePin(channel)}
    >
      <Icon name="pin" size={16} />
    </Button>
  );
}

function stateText(run: Run, cells: Cells, pin: number): string {
  const record = recordAt(cells, cursor.value);
  const state = record < 0 ? 0 : cells.state[pin * cells.records + record] & STATE_BITS;
  return `${run.name}, pinned channel ${pin} at step ${formatCount(cursor.value)}: ${STATE_NAMES[state]}`;
}

interface Props {
  run: Run;
  cells: Cells;
  /** The one that is selected. */
  channel: number;
}

export function Pins(props: Props) {
  return pinsIn(props.cells).length > 0 ? <PinList {...props} /> : null;
}

function PinList({ run, cells, channel }: Props) {
  const { ref, size } = useSize<HTMLDivElement>();
  const found = pinsIn(cells);
  const record = recordAt(cells, numberSteps[1].value);
  return (
    <>
      <h3>
        Pinned{" "}
        <span class="sub">
          <bdi>{run.name}</bdi>, Δ at the cursor
        </span>
      </h3>
      <div class="barcodes pins">
        <div class="barcode-names">
          {found.map((pin) => (
            <div key={pin} class={pin === channel ? "own" : ""}>
              <button type="button" class="plain linked" onClick={() => update({ channel: pin })}>
                #{pin}
              </button>
              <span class="sub number">
                {record < 0 ? "–" : formatNumber(deltaAt(cells, pin * cells.records + record))}
              </span>
              <button type="button" class="plain" aria-label={`Unpin channel ${pin}`} onClick={() => togglePin(pin)}>
                <Icon name="close" size={14} />
              </button>
            </div>
          ))}
        </div>
        <div class="barcode-plots" ref={ref} {...stepPointer(size.width)}>
          <Barcodes
            codes={found.map((pin) => ({ label: stateText(run, cells, pin), cells, channel: pin }))}
            height={24}
            width={size.width}
          />
          <Crosshair width={size.width} />
        </div>
      </div>
    </>
  );
}
