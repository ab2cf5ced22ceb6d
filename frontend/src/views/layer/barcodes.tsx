/** Single channels over steps as barcodes: one in all shown runs, and the pinned ones of a run. */

import type { ComponentChildren } from "preact";
import { type Cells, cellAt } from "../../data/cells";
import { formatCount, formatNumber } from "../../data/format";
import { STATE_NAMES } from "../../data/states";
import { drawCells } from "../../draw/heatmap";
import { RasterCanvas, useSize } from "../../parts/canvas";
import { Crosshair, stepPointer } from "../../parts/plot";
import { Button, Icon, Lost, Marker, RunName } from "../../parts/widgets";
import { cellsOf, layerCells } from "../../state/answers";
import { cursor } from "../../state/cursor";
import { numberSteps } from "../../state/followers";
import { togglePin } from "../../state/navigate";
import { NOT_LOADED } from "../../state/resource";
import { layerIn, type Run, shownRuns } from "../../state/runs";
import { pins, update } from "../../state/store";

const HEIGHT = 14;

interface Barcode {
  run: Run;
  cells: Cells;
  channel: number;
  /** Shown next to it. */
  name: ComponentChildren;
  /** Whether it is the run or channel in focus. */
  own: boolean;
}

/** "a, channel 3 at step 10: moving, violated" */
function codeText({ run, cells, channel }: Barcode, kind: string): string {
  const cell = cellAt(cells, channel, cursor.value);
  const violated = cell?.violated && kind === "channel" ? ", violated" : "";
  return `${run.name}, ${kind} ${channel} at step ${formatCount(cursor.value)}: ${STATE_NAMES[cell?.state ?? 0]}${violated}`;
}

interface Props {
  codes: readonly Barcode[];
  /** What they are called. */
  kind: "channel" | "pinned channel";
  /** Of a row. */
  height: number;
  class: string;
}

/** A canvas for all, as each is a layer that every frame has to compose. */
function Barcodes({ codes, kind, height, ...rest }: Props) {
  const { ref, size } = useSize<HTMLDivElement>();
  const { width } = size;
  return (
    <div class={rest.class}>
      <div class="barcode-names">
        {codes.map(({ run, channel, name, own }) => (
          <div
            key={`${run.name} ${channel}`}
            class={own ? "own" : ""}
            title={kind === "channel" ? run.name : undefined}
          >
            {name}
          </div>
        ))}
      </div>
      <div class="barcode-plots" ref={ref} {...stepPointer(width)}>
        <RasterCanvas
          label={codes.map((code) => codeText(code, kind)).join(". ")}
          width={width}
          height={codes.length * height}
          inputs={[codes.length, ...codes.flatMap(({ cells, channel }) => [cells, channel])]}
          steps
          paint={function* ({ area, ratio, scale, pixels }) {
            for (const [i, { cells, channel }] of codes.entries()) {
              const y = Math.round((i * height + (height - HEIGHT) / 2) * ratio);
              const row = { ...area, y, height: Math.round(HEIGHT * ratio) };
              const style = { mode: "both", threshold: cells.header.threshold, pixels } as const;
              drawCells(row, cells, Uint32Array.of(channel), scale, style);
              yield;
            }
          }}
        />
        <Crosshair width={width} />
      </div>
    </div>
  );
}

/** The runs that have this channel of this layer, as far as their data is there. */
export const runsWith = (layer: string, channel: number): { run: Run; cells: Cells }[] =>
  shownRuns.value.flatMap((run) => {
    const cells = layerCells(run, layer);
    return cells && channel < cells.channels && cells.records > 0 ? [{ run, cells }] : [];
  });

export function AcrossRuns({ layer, channel, run }: { layer: string; channel: number; run: Run }) {
  const codes = runsWith(layer, channel).map((entry) => ({
    ...entry,
    channel,
    own: entry.run.name === run.name,
    name: (
      <>
        <Marker color={entry.run.color} shape={entry.run.shape} size={9} />
        <RunName run={entry.run} />
      </>
    ),
  }));
  const lost = shownRuns.value.filter((other) => {
    const answer = layerIn(other, layer) ? cellsOf(other.name, layer) : null;
    return answer && !answer.value && answer.error;
  });
  return (
    <>
      <h3>
        State across runs <span class="sub">channel {channel}</span>
      </h3>
      {lost.length > 0 ? (
        <p class="sub">
          <Lost
            why={cellsOf(lost[0].name, layer).error ?? ""}
            what={`${lost.map(({ short }) => short).join(", ")}: ${NOT_LOADED}`}
          />
        </p>
      ) : null}
      <Barcodes class="barcodes" codes={codes} kind="channel" height={20} />
    </>
  );
}

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

/** Those pinned channels that the layer has, each of which can be selected or unpinned; one of them may be selected. */
export function Pins({ run, cells, channel }: { run: Run; cells: Cells; channel: number }) {
  const codes = pins.value
    .filter((pin) => pin < cells.channels)
    .map((pin) => ({
      run,
      cells,
      channel: pin,
      own: pin === channel,
      name: (
        <>
          <button type="button" class="plain linked" onClick={() => update({ channel: pin })}>
            #{pin}
          </button>
          <span class="sub number">{formatNumber(cellAt(cells, pin, numberSteps[1].value)?.delta)}</span>
          <button type="button" class="plain" aria-label={`Unpin channel ${pin}`} onClick={() => togglePin(pin)}>
            <Icon name="close" size={14} />
          </button>
        </>
      ),
    }));
  if (codes.length === 0) return null;
  return (
    <>
      <h3>
        Pinned{" "}
        <span class="sub">
          <bdi>{run.name}</bdi>, Δ at the cursor
        </span>
      </h3>
      <Barcodes class="barcodes pins" codes={codes} kind="pinned channel" height={24} />
    </>
  );
}
