/** One channel over steps as lines: its relative delta in all shown runs, and the shares that its masks let through. */

import { useMemo } from "preact/hooks";
import { cellAt, deltaAt } from "../../data/cells";
import { formatCount, formatNumber, formatPower, formatShare, wholeShare } from "../../data/format";
import { axisEnd, lastAtOrBefore } from "../../data/steps";
import { decades, drawLines, drawShares, levelY, type ShareLine } from "../../draw/lines";
import { Axis } from "../../parts/axis";
import { aside, Canvas, type Draw, inPixels, Sized } from "../../parts/canvas";
import { Crosshair, stepPointer } from "../../parts/plot";
import type { ChannelAnswer } from "../../server/types";
import { cursor } from "../../state/cursor";
import { numberSteps } from "../../state/followers";
import type { Run } from "../../state/runs";
import { theme } from "../../state/store";
import { runsWith } from "./barcodes";

interface LinesProps {
  /** A sentence that says what the lines show. */
  label: string;
  /** The texts of the axis of values, and where they stand. */
  ticks: readonly (readonly [string, number])[];
  left: number;
  height: number;
  inputs: readonly unknown[];
  draw: Draw;
  /** Whether it replaces all pixels. */
  whole?: boolean;
  /** Whether it has an axis of steps, which the pointer reads. */
  axis?: boolean;
}

function Lines({ label, ticks, left, height, inputs, draw, whole, axis }: LinesProps) {
  return (
    <Sized class="lines" least={left}>
      {(size) => {
        const width = size.width - left;
        return (
          <>
            <div class="lines-axis" style={{ width: `${left}px`, height: `${height}px` }} aria-hidden="true">
              {ticks.map(([text, top]) => (
                <span key={text} style={{ top: `${top}px` }}>
                  {text}
                </span>
              ))}
            </div>
            <div class="lines-plot" style={{ width: `${width}px` }} {...(axis ? stepPointer(width) : {})}>
              <Canvas
                label={label}
                width={width}
                height={height + 2}
                whole={whole}
                steps
                draw={draw}
                inputs={[...inputs, theme.value]}
              />
              <Crosshair width={width} height={height} />
              {axis ? <Axis width={width} pill={false} count={4} /> : null}
            </div>
          </>
        );
      }}
    </Sized>
  );
}

const DELTAS = 104;

export function DeltaLines({ layer, channel, run }: { layer: string; channel: number; run: Run }) {
  const entries = runsWith(layer, channel);
  const drawn = [...entries.flatMap((entry) => [entry.cells, entry.run.color]), channel, run.name];
  const lines = useMemo(
    () =>
      entries.map(({ cells, run: { color, name } }) => {
        const row = channel * cells.records;
        const values = Float64Array.from({ length: cells.records }, (_, t) => deltaAt(cells, row + t));
        return { steps: cells.steps, values, color, bold: name === run.name };
      }),
    drawn,
  );
  const span = decades(lines);
  const every = Math.ceil((span[1] - span[0] + 1) / 5);
  const ticks = Array.from({ length: Math.floor((span[1] - span[0]) / every) + 1 }, (_, i) => {
    const value = 10 ** (span[1] - i * every);
    return [formatPower(value), levelY(value, span, DELTAS)] as const;
  });
  const own = entries.find((entry) => entry.run.name === run.name);
  const now = own && cellAt(own.cells, channel, cursor.value)?.delta;
  return (
    <>
      <h3>
        Δ current vs past <span class="sub">log scale; gaps are exact zeros, or no Δ</span>
      </h3>
      <Lines
        label={`Relative delta of channel ${channel} over steps in ${entries.length} runs; in ${run.name} at step ${formatCount(cursor.value)}: ${formatNumber(now)}`}
        ticks={ticks}
        left={30}
        height={DELTAS}
        inputs={[lines]}
        whole
        axis
        draw={aside((context, scale) => drawLines({ context, scale, height: DELTAS, theme: theme.value }, lines, span))}
      />
    </>
  );
}

/** A share of a channel's elements as text; one that isn't known is a dash. */
export const share = (value: number | null | undefined, elements = 0, precision = 1): string =>
  value === null || value === undefined ? "–" : formatShare(wholeShare(value, elements, precision), 1);

const SHARES = 44;

function toLine(answer: ChannelAnswer, which: "kept" | "trainable"): ShareLine {
  return {
    steps: Float64Array.from(answer.steps),
    values: Float64Array.from(answer[which], (value) => value ?? Number.NaN),
    dashed: which === "trainable",
  };
}

/** Remaining and trainable weights of the channel over steps; nothing if no mask ever held any. */
export function MaskDensity({ answer, elements }: { answer: ChannelAnswer; elements: number }) {
  const held = [...answer.kept, ...answer.trainable].some((value) => value !== null && value < 1);
  if (!held) return null;
  const steps = Float64Array.from(answer.steps);
  const end = axisEnd(steps, steps);
  const text = (which: "kept" | "trainable", step: number) => {
    const record = step >= end ? -1 : lastAtOrBefore(steps, step);
    return share(answer[which][record], elements, answer.precision);
  };
  const words = `not pruned ${text("kept", cursor.value)}, trainable ${text("trainable", cursor.value)}`;
  return (
    <>
      <h3>
        Mask density
        <span class="sub density-key">
          <i class="line-key" /> not pruned {text("kept", numberSteps[1].value)}
          <i class="line-key dashed" /> trainable {text("trainable", numberSteps[1].value)}
        </span>
      </h3>
      <Lines
        label={`Share of the weights of channel ${answer.channel} that the masks let through at step ${formatCount(cursor.value)}: ${words}`}
        ticks={[
          ["100%", 1],
          ["0", SHARES],
        ]}
        left={36}
        height={SHARES}
        inputs={[answer]}
        draw={inPixels((context, scale) => {
          const lines = [toLine(answer, "kept"), toLine(answer, "trainable")];
          drawShares({ context, scale, height: SHARES, theme: theme.value }, end, lines);
        })}
      />
    </>
  );
}
