/** Weight change against output change of the chosen run's layers at the cursor. */

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
import { formatCount, formatNumber, formatPower } from "../../model/format";
import { changeTicks, decadesOf, formatChange, placeKey } from "../../model/function";
import { type Move, movesIn } from "../../model/moves";
import type { Overview } from "../../model/overview";
import { columnAt } from "../../model/series";
import { SETTLED, STATE_NAMES } from "../../model/states";
import { DataTable, Failure, RunLabel, RunName, Skeleton } from "../shared/bits";
import { Canvas, useSize } from "../shared/canvas";
import { openLayer } from "../state/actions";
import { cursor, readStep } from "../state/cursor";
import { unsettledOf } from "../state/data";
import { hover, theme, update } from "../state/store";
import { FunctionPanel } from "./panel";
import { activePlace, listedPlaces, type Probed } from "./places";
import { placeTip } from "./tip";

const TRAIL = 8;
const LABELS = 7;
const LETTER = 5.8;
const WIDEST = 130;
const LEFT = 40;
const BOTTOM = 34;
const NEAR = 18;

interface Shown {
  entry: Probed;
  overview: Overview;
}

const idOf = (move: Move): string => placeKey({ kind: "layer", name: move.layer });

let columnsOf: unknown[] = [];
let known = new Map<number, Move[]>();

/** The layers in a column of the overview: kept, for the cursor comes by again. */
function movesAt({ entry, overview }: Shown, column: number): Move[] {
  const of = [entry, overview, listedPlaces.value];
  if (of.some((one, i) => one !== columnsOf[i])) [columnsOf, known] = [of, new Map()];
  const layers = () => listedPlaces.value.filter((own) => own.kind === "layer").map((own) => own.name);
  const moves = known.get(column) ?? movesIn(overview, entry.series, layers(), column);
  known.set(column, moves);
  return moves;
}

const weightsText = ({ weights, state }: Move): string =>
  weights === 0 && state !== SETTLED ? STATE_NAMES[state] : formatNumber(weights);

const moveText = (move: Move): string =>
  `${move.layer}: weights ${weightsText(move)}, output ${formatChange(move.output, "relative")}`;

/** The layer under the pointer, or the one that is chosen. */
const isChosen = (move: Move): boolean => idOf(move) === (hover.value?.row ?? activePlace.value?.id);

/** Where everything is: the columns of the trail, the dots by importance, and their labels. */
function arrange(shown: Shown, width: number, height: number) {
  const column = columnAt(shown.overview, readStep.value);
  const oldest = Math.max(0, column - TRAIL + 1);
  const columns = Array.from({ length: column - oldest + 1 }, (_, i) => movesAt(shown, oldest + i));
  const axis = (of: "weights" | "output") =>
    decadesOf(
      columns.flat().map((move) => move[of]),
      6,
    );
  const frame = { width, height, x: axis("weights"), y: axis("output") };
  const dots = (columns[columns.length - 1] ?? [])
    .flatMap((move) => {
      const spot = spotOf(frame, move);
      const weight = isChosen(move) ? 999 : notable(move);
      return spot ? [{ ...move, spot, weight, width: Math.min(WIDEST, move.layer.length * LETTER + 2) }] : [];
    })
    .sort((a, b) => b.weight - a.weight);
  // All whose weights and outputs stand still share one place.
  const still = dots.filter((dot) => dot.weights === 0 && dot.output === 0);
  const more = still.length > 1 ? ` +${formatCount(still.length - 1)}` : "";
  if (more) still[0].width += more.length * LETTER;
  const spots = dots.map(({ spot }) => spot);
  const labels = placeLabels(frame, dots.slice(0, 4 * LABELS), spots, LABELS).map((label) => ({
    ...label,
    more: label.layer === still[0]?.layer ? more : "",
  }));
  return { column, columns, frame, dots, labels, chosen: dots.find(isChosen)?.layer ?? null };
}

function Ticks({ frame }: { frame: ScatterFrame }) {
  return (
    <div aria-hidden="true">
      {[...changeTicks(frame.y, 4), 0].map((value) => (
        <span key={value} class="fn-tick left" style={{ top: `${scatterY(frame, value)}px` }}>
          {value === 0 ? "0" : formatPower(value)}
        </span>
      ))}
      {[...changeTicks(frame.x, 4), 0].map((value) => (
        <span key={value} class="fn-tick below" style={{ left: `${LEFT + scatterX(frame, value)}px` }}>
          {value === 0 ? "still" : formatPower(value)}
        </span>
      ))}
    </div>
  );
}

function Plot({ shown, width, height }: { shown: Shown; width: number; height: number }) {
  const { entry, overview } = shown;
  const { column, columns, frame, dots, labels, chosen } = arrange(shown, width, height);
  const nearest = (event: MouseEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const away = ({ spot }: (typeof dots)[number]) =>
      Math.hypot(spot[0] - event.clientX + box.left, spot[1] - event.clientY + box.top);
    const best = dots.length > 0 ? dots.reduce((a, b) => (away(b) < away(a) ? b : a)) : null;
    return best && away(best) < NEAR ? best : null;
  };
  return (
    <>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the keys of the whole page do the same */}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the keys of the whole page do the same */}
      <div
        class="fn-dots"
        onPointerMove={(event) => {
          const found = nearest(event);
          const at = { step: cursor.value, run: null, channel: null, x: event.clientX, y: event.clientY };
          const own = found && listedPlaces.value.find((other) => other.id === idOf(found));
          hover.value = own ? { ...at, row: own.id, tip: placeTip(entry, own, at.step) } : null;
        }}
        onPointerLeave={() => (hover.value = null)}
        onClick={(event) => {
          const found = nearest(event);
          if (found) update({ place: idOf(found) });
        }}
        onDblClick={(event) => {
          const found = nearest(event);
          if (found) openLayer(found.layer, entry.run.name);
        }}
      >
        <Canvas
          label={`${entry.run.name}, weights and outputs of ${formatCount(dots.length)} layers at step ${formatCount(cursor.value)}: ${dots.slice(0, 3).map(moveText).join("; ") || "no record"}`}
          width={width}
          height={height}
          inputs={[entry, overview, listedPlaces.value, column, chosen, theme.value]}
          draw={(context, _w, _h, ratio) => {
            context.setTransform(ratio, 0, 0, ratio, 0, 0);
            drawScatter(context, frame, columns, { ...entry.run, chosen }, theme.value);
            context.setTransform(1, 0, 0, 1, 0, 0);
          }}
        />
        {labels.map(({ layer, left, top, width: wide, more }) => (
          <span
            key={layer}
            aria-hidden="true"
            class={layer === chosen ? "own" : ""}
            style={{ left: `${left}px`, top: `${top}px`, width: `${wide}px` }}
          >
            <RunName text={layer} />
            {more}
          </span>
        ))}
      </div>
      <Ticks frame={frame} />
    </>
  );
}

function ScatterTable({ shown }: { shown: Shown }) {
  return (
    <DataTable
      caption={`Layers of ${shown.entry.run.name} at step ${formatCount(cursor.value)}`}
      columns={[{ title: "Layer", text: true }, { title: "Weight change" }, { title: "Output change" }]}
      rows={movesAt(shown, columnAt(shown.overview, cursor.value)).map((move) => [
        move.layer,
        weightsText(move),
        formatChange(move.output, "relative"),
      ])}
    />
  );
}

/** The chosen layer in words, and the steps that its numbers are of. */
function Readout({ shown }: { shown: Shown }) {
  const { starts, ends } = shown.overview;
  const column = columnAt(shown.overview, readStep.value);
  if (column < 0) return <p>No record at this step.</p>;
  const move = movesAt(shown, column).find(isChosen);
  const [from, to] = [formatCount(starts[column]), formatCount(ends[column])];
  const steps = from === to ? `step ${from}` : `largest of steps ${from} to ${to}`;
  return (
    <p>
      {move ? (
        <b>{moveText(move)}</b>
      ) : (
        "On the left no weight changed: what changes in a frozen layer comes from those before it"
      )}{" "}
      · {steps}
    </p>
  );
}

function Picture({ entry }: { entry: Probed }) {
  const { ref, size } = useSize<HTMLDivElement>();
  const { value: overview, error } = unsettledOf(entry.run.name);
  const shown = overview && { entry, overview };
  return (
    <>
      {error ? <Failure text={error} /> : null}
      {shown || error ? null : <Skeleton height={240} />}
      <p class="sub">output ‖y − y′‖ / ‖y′‖</p>
      <div class="fn-scatter-body" ref={ref}>
        {shown && size.width > LEFT + STILL ? (
          <Plot shown={shown} width={size.width - LEFT} height={size.height - BOTTOM} />
        ) : null}
      </div>
      <p class="sub end">weights: mean Δ of channels that nothing holds (dashed: equal)</p>
      {shown ? <Readout shown={shown} /> : null}
    </>
  );
}

export function FunctionScatter({ entry }: { entry: Probed }) {
  const overview = unsettledOf(entry.run.name).value;
  return (
    <FunctionPanel
      name="scatter"
      title="Weights and outputs"
      head={<RunLabel run={entry.run} />}
      table={() => overview && <ScatterTable shown={{ entry, overview }} />}
    >
      <Picture entry={entry} />
    </FunctionPanel>
  );
}
