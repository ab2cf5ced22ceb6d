/** The runs, drawn: a lane for each, with what happened as flags, and its numbers at the cursor. */

import { computed } from "@preact/signals";
import { FLAGS, flagsAt, flagText } from "../../data/flags";
import { formatCount, plural } from "../../data/format";
import { commonSpans, type Drawable, drawLane, flagColor, type LaneShape, laneShape } from "../../draw/lane";
import { Axis } from "../../parts/axis";
import { Canvas, Sized } from "../../parts/canvas";
import { Plot, type Target } from "../../parts/plot";
import { Lost, OldSign, RunLabel, Select } from "../../parts/widgets";
import { sharesText } from "../../parts/words";
import { laneOf, laneScalar, scalarNames, scalarsOf } from "../../state/answers";
import { blockAt, figuresAt, recordStep } from "../../state/at";
import { headPart, numberSteps, spokenStep } from "../../state/followers";
import { rateText, rateTitle, scalarText } from "../../state/lanes";
import { openRun } from "../../state/navigate";
import { type Run, scaleOf, shownRuns, totalLayers } from "../../state/runs";
import { chooseScalar, theme, update } from "../../state/store";

/** Heights of a lane. */
const [LOWEST, TALLEST] = [15, 76];
const HEAD = 26;
/** A letter of a name, about; its marker and gaps; and most of the width that names take. */
const [LETTER, MARKER, MOST_NAMES] = [7, 38, 0.36];
/** The width of the column of learning rates, and of that of scalars, at least and at most, with a letter of a menu. */
const [RATE, RATES] = [104, 150];
const [SCALAR, SCALARS, MENU_LETTER, MENU] = [116, 240, 7, 40];
/** Narrower than this, the numbers are left out. */
const NARROW = 560;

/** So high that the lanes leave room for the findings below. */
export const laneHeight = (runs: number, room: number): number =>
  Math.min(TALLEST, Math.max(LOWEST, Math.floor((0.46 * room - HEAD) / Math.max(1, runs))));

/** How far from a flag the pointer reads it, in pixels. */
const NEAR = 7;

const hasScalars = computed(() => scalarNames.value.length > 0);

const drawableOf = (run: Run): Drawable | null => {
  const lane = laneOf(run.name).value;
  return lane && { lane, scalar: scalarsOf(run.name).value, color: run.color };
};

/** All lanes as one picture. */
function Picture({ runs, shape, width }: { runs: readonly Run[]; shape: LaneShape; width: number }) {
  const drawn = runs.map(drawableOf);
  const trends = drawn.map((own) => own?.scalar ?? null);
  const spans = commonSpans(trends);
  const height = shape.height * runs.length;
  const read = (pointed: number, y: number): Target => {
    const place = Math.min(runs.length - 1, Math.max(0, Math.floor(y / shape.height)));
    const [run, own] = [runs[place], drawn[place]];
    const { from, to } = scaleOf(width);
    const { step, flags } = flagsAt(own?.lane.flags ?? [], pointed, (NEAR * (to - from)) / width);
    const lines = flags.map(flagText);
    return {
      step: recordStep(run, step),
      run: run.name,
      row: "",
      tip: lines.length > 0 ? lines : undefined,
      pick: () => update({ run: run.name }),
      open: () => openRun(run.name),
    };
  };
  return (
    <Plot class="lanes-plot" width={width} style={{ height: `${height}px` }} read={read}>
      <Canvas
        whole={false}
        label={`States of all channels over steps, of ${plural(runs.length, "run")}`}
        width={width}
        height={height}
        inputs={[...drawn.flatMap((own) => [own?.lane, own?.scalar]), theme.value, shape.height, runs]}
        steps
        draw={function* (context, _width, _height, ratio) {
          for (const [place, own] of drawn.entries()) {
            if (own)
              drawLane(context, own, spans[place], place * shape.height, shape, scaleOf(width), theme.value, ratio);
            yield;
          }
        }}
      />
    </Plot>
  );
}

/** What screen readers read of a lane. */
function laneWords(run: Run): string {
  const step = spokenStep.value;
  const said = sharesText(figuresAt(run, totalLayers.value, step), blockAt(run, step));
  const lane = laneOf(run.name).value;
  const flags = lane ? lane.flags.slice(0, 8).map((flag) => `. ${flagText(flag)}`) : [];
  return `${run.name} at step ${formatCount(step)}: ${said}${flags.join("")}`;
}

function Numbers({ run, place }: { run: Run; place: number }) {
  const step = headPart(numberSteps, place).value;
  const { value, own } = scalarText(run, step);
  const scalars = scalarsOf(run.name).value;
  const placed = scalars?.placed === "time" ? "Placed by the time of its points" : "Placed by its own steps";
  return (
    <>
      <span class="number lane-rate">{rateText(run, step)}</span>
      {hasScalars.value ? (
        <span
          class="number lane-scalar"
          title={scalars?.name ? `${scalars.name}. ${placed}` : `This run has no ${laneScalar.value}`}
        >
          {own ? (
            <span class="sub">
              {scalars?.placed === "time" ? "≈ " : ""}
              {own}:{" "}
            </span>
          ) : null}
          {value}
        </span>
      ) : null}
    </>
  );
}

function LaneRow({ run, place, shape }: { run: Run; place: number; shape: LaneShape }) {
  const answer = laneOf(run.name);
  return (
    <li class="lane" style={{ height: `${shape.height}px` }} aria-label={laneWords(run)}>
      <button type="button" class="plain lane-name" onClick={() => openRun(run.name)}>
        <RunLabel run={run} />
      </button>
      <span class="lane-plot">
        {answer.error && !answer.value ? <Lost why={answer.error} /> : <OldSign small of={[answer]} />}
      </span>
      <Numbers run={run} place={place} />
    </li>
  );
}

/** Which scalar is shown; a run may have none of that name. */
function ScalarChoice() {
  const own = laneScalar.value;
  if (!hasScalars.value || own === null) return null;
  const names = scalarNames.value.includes(own) ? scalarNames.value : [own, ...scalarNames.value];
  return (
    <Select
      class="lane-scalar"
      label="Scalar of the lanes"
      title={own}
      value={own}
      options={names.map((name) => [name, name])}
      onPick={chooseScalar}
    />
  );
}

/** What the flags that occur mean. */
function FlagLegend({ runs, shape, several }: { runs: readonly Run[]; shape: LaneShape; several: boolean }) {
  const present = new Set(runs.flatMap(({ name }) => laneOf(name).value?.flags.map(({ kind }) => kind) ?? []));
  const rates =
    shape.chart > 0 && runs.some(({ name }) => laneOf(name).value?.rates.some((rate) => Number.isFinite(rate)));
  return (
    <p class="lane-legend sub">
      {Object.entries(FLAGS).map(([kind, { title, path }]) =>
        present.has(kind) ? (
          <span key={kind}>
            <svg width="9" height="9" viewBox="0 0 10 10" aria-hidden="true">
              <path d={path} fill={flagColor(kind, theme.value)} fill-rule="evenodd" />
            </svg>{" "}
            {title}
          </span>
        ) : null,
      )}
      {rates ? <span class="dashed">{rateTitle(several)}</span> : null}
      {runs.every(({ name }) => scalarsOf(name).value?.names.length === 0) ? (
        <span title="They are looked for in the directory of each run, and below it">no scalars, such as a loss</span>
      ) : null}
    </p>
  );
}

export function Lanes({ room }: { room: number }) {
  const runs = shownRuns.value;
  if (runs.length === 0) return null;
  const shape = laneShape(laneHeight(runs.length, room), hasScalars.value);
  const longest = Math.max(...runs.map(({ short }) => short.length));
  const menu = MENU + MENU_LETTER * Math.max(0, ...scalarNames.value.map((name) => name.length));
  const several = runs.some(({ name }) => laneOf(name).value?.several === true);
  const rate = several ? RATES : RATE;
  return (
    <Sized class="lanes">
      {({ width }) => {
        const names = Math.min(MARKER + longest * LETTER, MOST_NAMES * width);
        const scalars = hasScalars.value ? Math.max(SCALAR, Math.min(SCALARS, menu, 0.2 * width)) : 0;
        const numbers = rate + scalars;
        const plot = Math.floor(width - names - (width < NARROW ? 0 : numbers) - 12);
        const style = { "--names": `${names}px`, "--plot": `${plot}px`, "--rate": `${rate}px` };
        return (
          <div class={width < NARROW ? "lanes-inner narrow" : "lanes-inner"} style={style}>
            <div class="lanes-head">
              <span class="sub">{plural(runs.length, "run")}</span>
              <Axis width={plot} pill count={Math.max(3, Math.floor(plot / 80))} />
              <span class="sub lane-rate">{rateTitle(several)}</span>
              <ScalarChoice />
            </div>
            <div class="lanes-body">
              <ul aria-label="Runs over steps">
                {runs.map((run, place) => (
                  <LaneRow key={run.name} run={run} place={place} shape={shape} />
                ))}
              </ul>
              <Picture runs={runs} shape={shape} width={plot} />
            </div>
            <FlagLegend runs={runs} shape={shape} several={several} />
          </div>
        );
      }}
    </Sized>
  );
}
