/** Weight change against output change of the chosen run's layers at the cursor. */

import { ABSENT } from "../../data/absent";
import { formatCount, formatNumber, formatPower, plural } from "../../data/format";
import {
  type ChangeAxis,
  changeAxis,
  changeTicks,
  formatChange,
  type Move,
  movesAt,
  placeKey,
  probedAt,
} from "../../data/function";
import { QUIET, STATE_NAMES } from "../../data/states";
import {
  drawScatter,
  notable,
  placeLabels,
  type ScatterFrame,
  STILL,
  scatterX,
  scatterY,
  spotOf,
} from "../../draw/scatter";
import { pageTextWidth } from "../../draw/text";
import { Canvas, inPixels, Sized } from "../../parts/canvas";
import { pointAt, pointNowhere } from "../../parts/plot";
import { DataTable, LayerName, OldSign, RunLabel, Status } from "../../parts/widgets";
import { blockAt, withoutQuietAt } from "../../state/at";
import { cursor, readStep } from "../../state/cursor";
import { numberSteps } from "../../state/followers";
import { openLayer } from "../../state/navigate";
import { activePlace, listedPlaces, type Probed } from "../../state/probed";
import { insteadText, type Resource, WAITING } from "../../state/resource";
import { hover, theme, update } from "../../state/store";
import { FunctionPanel, placeTip } from "./place";

const TRAIL = 8;
const LABELS = 7;
const WIDEST = 130;
const GAP = 4;
const LEFT = 40;
const BOTTOM = 34;
const NEAR = 18;

/** Of a label's text. */
const widthOf = (text: string): number => Math.ceil(pageTextWidth(text, 11)) + 1;
const idOf = (move: Move): string => placeKey({ kind: "layer", name: move.layer });

/** The layers at the record of the probe in force at a step. */
function movesOf({ run, series }: Probed, step: number): Move[] {
  const layers = listedPlaces.value.filter((own) => own.kind === "layer").map((own) => own.name);
  return movesAt(series, layers, step, (layer, at) => withoutQuietAt(run, [layer], at));
}

/** The answer that the weights at the record of the probe in force come from. */
function weightsAnswer({ run, series }: Probed, step: number): Resource<unknown> | null {
  const record = probedAt(series, step);
  return record < 0 ? null : blockAt(run, series.steps[record], 0);
}

/** The same for all runs and steps: places can be compared; a mean relative delta is 1 at most. */
const WEIGHTS_AXIS: ChangeAxis = { log: true, low: -7, high: 0 };

const weightsText = ({ weights, state }: Move): string =>
  weights === 0 && state !== QUIET ? STATE_NAMES[state] : formatNumber(weights);

const moveText = (move: Move): string =>
  `${move.layer}: weights ${weightsText(move)}, output ${formatChange(move.output, "relative")}`;

/** The layer under the pointer, or the one that is chosen. */
const isChosen = (move: Move): boolean => idOf(move) === (hover.value?.row ?? activePlace.value?.id);

/** Where everything is: the columns of the trail, the dots by importance, and their labels. */
function arrange(entry: Probed, width: number, height: number) {
  const { steps } = entry.series;
  const record = probedAt(entry.series, readStep.value);
  const trail = steps.subarray(Math.max(0, record - TRAIL + 1), record + 1);
  const trails = Array.from(trail, (step) => movesOf(entry, step));
  const outputs = changeAxis([entry.series], "relative", null, 6);
  const frame = { width, height, x: WEIGHTS_AXIS, y: outputs };
  const dots = (trails[trails.length - 1] ?? [])
    .flatMap((move) => {
      const spot = spotOf(frame, move);
      const weight = isChosen(move) ? 999 : notable(move);
      return spot ? [{ ...move, spot, weight }] : [];
    })
    .sort((a, b) => b.weight - a.weight);
  // All whose weights and outputs didn't change share one place.
  const still = dots.filter((dot) => dot.weights === 0 && dot.output === 0);
  const more = still.length > 1 ? ` +${formatCount(still.length - 1)}` : "";
  const moreOf = (layer: string) => (layer === still[0]?.layer ? more : "");
  const wanted = dots.slice(0, 4 * LABELS).map(({ layer, spot }) => {
    const after = moreOf(layer);
    return { layer, spot, width: Math.min(WIDEST, widthOf(layer)) + (after ? GAP + widthOf(after) : 0) };
  });
  const spots = dots.map(({ spot }) => spot);
  const labels = placeLabels(frame, wanted, spots, LABELS).map((label) => ({ ...label, more: moreOf(label.layer) }));
  return { record, trails, frame, dots, labels, chosen: dots.find(isChosen)?.layer ?? null };
}

function Ticks({ frame }: { frame: ScatterFrame }) {
  const tick = (side: string, zero: string, place: (value: number) => Record<string, string>) => (value: number) => (
    <span key={`${side} ${value}`} class={`fn-tick ${side}`} style={place(value)}>
      {value === 0 ? zero : formatPower(value)}
    </span>
  );
  const below = (value: number) => ({ left: `${LEFT + scatterX(frame, value)}px` });
  return (
    <div aria-hidden="true">
      {[...changeTicks(frame.y, 4), 0].map(tick("left", "0", (value) => ({ top: `${scatterY(frame, value)}px` })))}
      {[...changeTicks(frame.x, 4), 0].map(tick("below", "still", below))}
    </div>
  );
}

function Plot({ entry, width, height }: { entry: Probed; width: number; height: number }) {
  const { record, trails, frame, dots, labels, chosen } = arrange(entry, width, height);
  /** The dot near the pointer. */
  const nearest = (event: MouseEvent) => {
    const { left, top } = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const away = ({ spot: [x, y] }: (typeof dots)[number]) =>
      Math.hypot(x - event.clientX + left, y - event.clientY + top);
    const [best] = [...dots].sort((a, b) => away(a) - away(b));
    return best && away(best) < NEAR ? best : null;
  };
  const words =
    dots.slice(0, 3).map(moveText).join("; ") || insteadText(weightsAnswer(entry, readStep.value), ABSENT.record);
  return (
    <>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the keys of the whole page do the same */}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the keys of the whole page do the same */}
      <div
        class="fn-dots"
        onPointerMove={(event) => {
          const dot = nearest(event);
          const own = dot && listedPlaces.value.find(({ id }) => id === idOf(dot));
          const step = cursor.value;
          pointAt(event, own ? { step, row: own.id, tip: placeTip(entry, own, step) } : null);
        }}
        onPointerLeave={pointNowhere}
        onClick={(event) => {
          const dot = nearest(event);
          if (dot) update({ place: idOf(dot) });
        }}
        onDblClick={(event) => {
          const dot = nearest(event);
          if (dot) openLayer(dot.layer, entry.run.name);
        }}
      >
        <Canvas
          label={`${entry.run.name}, weights and outputs of ${dots.length > 0 ? plural(dots.length, "layer") : "layers"} at step ${formatCount(cursor.value)}: ${words}`}
          width={width}
          height={height}
          inputs={[entry, listedPlaces.value, record, dots.length, chosen, theme.value]}
          draw={inPixels((context) => drawScatter(context, frame, trails, { ...entry.run, chosen }, theme.value))}
        />
        {labels.map(({ layer, left, top, width: wide, more }) => (
          <span
            key={layer}
            aria-hidden="true"
            class={layer === chosen ? "own" : ""}
            style={{ left: `${left}px`, top: `${top}px`, width: `${wide}px` }}
          >
            <LayerName id={layer} />
            {more}
          </span>
        ))}
      </div>
      <Ticks frame={frame} />
    </>
  );
}

function ScatterTable({ entry }: { entry: Probed }) {
  return (
    <DataTable
      caption={`Layers of ${entry.run.name} at step ${formatCount(recordedStep(entry, cursor.value))}`}
      columns={["Layer", "Weight change", "Output change"]}
      texts={["Layer"]}
      rows={movesOf(entry, cursor.value).map((move) => [
        move.layer,
        weightsText(move),
        formatChange(move.output, "relative"),
      ])}
    />
  );
}

/** The step of the record of the probe in force. */
const recordedStep = ({ series }: Probed, step: number): number => series.steps[probedAt(series, step)] ?? Number.NaN;

/** The chosen layer in words, and the step that its numbers are of. */
function Readout({ entry }: { entry: Probed }) {
  const step = recordedStep(entry, readStep.value);
  if (Number.isNaN(step)) return <p>{ABSENT.recordHere}.</p>;
  const answer = weightsAnswer(entry, step);
  if (answer && !answer.value) return answer.error ? null : <p>{WAITING}</p>;
  const move = movesOf(entry, step).find(isChosen);
  const still = "On the left no weight changed: a frozen layer's output changes only through the layers before it";
  return (
    <p>
      {move ? <b>{moveText(move)}</b> : still} · step {formatCount(step)}
    </p>
  );
}

function WeightsStatus({ entry }: { entry: Probed }) {
  const answer = weightsAnswer(entry, numberSteps[1].value);
  return answer?.value ? null : <Status of={[["", answer]]} />;
}

export function FunctionScatter({ entry }: { entry: Probed }) {
  return (
    <FunctionPanel
      name="scatter"
      title="Weights and outputs"
      head={
        <>
          <RunLabel run={entry.run} />
          <OldSign of={[weightsAnswer(entry, numberSteps[1].value)]} />
        </>
      }
      table={() => (
        <>
          <WeightsStatus entry={entry} />
          <ScatterTable entry={entry} />
        </>
      )}
    >
      <p class="sub">output ‖y − y′‖ / ‖y′‖</p>
      <WeightsStatus entry={entry} />
      <Sized class="fn-scatter-body" least={LEFT + STILL}>
        {({ width, height }) => <Plot entry={entry} width={width - LEFT} height={height - BOTTOM} />}
      </Sized>
      <p class="sub end">x: mean Δ of unfrozen channels; dashed: y = x</p>
      <Readout entry={entry} />
    </FunctionPanel>
  );
}
