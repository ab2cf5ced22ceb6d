/**
 * One run's column: its words, its pointer and the outline of a row in it; the strips of all columns are one picture.
 */

import { ABSENT } from "../../data/absent";
import { formatCount, formatShare, plural } from "../../data/format";
import { kept } from "../../data/kept";
import { labelsOf } from "../../data/labels";
import type { Row } from "../../data/layers";
import { differenceText, measureName } from "../../data/measure";
import type { Figures } from "../../data/record";
import { cellAt, cellsIn, GAP, type Layout, type Place, placeAt } from "../../data/rowbox";
import { toPixel, toStep } from "../../data/scale";
import { LISTED, STATE_NAMES } from "../../data/states";
import { sparsityText } from "../../data/violations";
import { pageTextWidth } from "../../draw/text";
import { Axis } from "../../parts/axis";
import { startDrag, stepPointer } from "../../parts/plot";
import { Lost, Marker, movedTo, type Named, OldSign, RunName, Status } from "../../parts/widgets";
import { asideText, largest, sharesText, stepsText, stepText } from "../../parts/words";
import { columnAnswers, listLost, overviewOf, sparse, violatedIn } from "../../state/answers";
import { blockAt, figuresAt, recordStep } from "../../state/at";
import { baselineDiff, baselineDiffText, baseOf, lackingAt } from "../../state/baseline";
import { cursor } from "../../state/cursor";
import { headPart, numberSteps, spokenStep } from "../../state/followers";
import { listViolations, openLayer } from "../../state/navigate";
import { WAITING } from "../../state/resource";
import { lacks, type Run, scaleOf, shownRuns, totalLayers } from "../../state/runs";
import { focusRow, hover, measure, runName, update } from "../../state/store";
import { inSight, nameWidth } from "../../state/viewport";
import { Badge } from "./names";
import { stripsOf } from "./strips";

/** How many of the weights are pruned; an empty line keeps the heads aligned. */
function Sparsity({ figures }: { figures: Figures | null }) {
  const text = figures ? sparsityText(figures) : null;
  if (!figures || text === null) return <div class="two weights" />;
  const whole = `${formatCount(figures.pruned)} of ${plural(figures.prunable, "prunable weight")} held at zero`;
  return (
    <div class="two weights" title={whole}>
      <b>{text}</b>
      <span> sparsity</span>
    </div>
  );
}

/** The two largest shares; if they are of another step than the one that is read, the largest one and its step. */
function HeadShares({ figures, step }: { figures: Figures; step: number }) {
  const aside = asideText(figures, step) !== "";
  const shares = largest(figures).slice(0, aside ? 1 : 2);
  return (
    <>
      {shares.map(({ state, count }, i) => (
        <span key={state}>
          {i > 0 ? <span class="dot"> · </span> : ""}
          <b>{formatShare(count, figures.total)}</b> {STATE_NAMES[state]}
        </span>
      ))}
      {aside ? (
        <span>
          <span class="dot"> · </span>
          {stepsText(figures)}
        </span>
      ) : null}
    </>
  );
}

/** The bar and the numbers at the step under the pointer. */
function Now({ run, width, step }: { run: Run; width: number; step: number }) {
  const figures = figuresAt(run, totalLayers.value, step);
  const fixed = figuresAt(run, totalLayers.value, spokenStep.value);
  const [base, which] = [baseOf(run), measure.value];
  const lacking = lackingAt(run, step);
  return (
    <>
      <div
        class="bar"
        style={{ width: `${width}px` }}
        role="img"
        aria-label={`${run.name}: ${sharesText(fixed, blockAt(run, spokenStep.value))}`}
      >
        {LISTED.map((state) =>
          figures?.counts[state] ? (
            <span key={state} class={`fill-${STATE_NAMES[state]}`} style={{ flexGrow: figures.counts[state] }} />
          ) : null,
        )}
      </div>
      <div class="two">
        {lacking ? (
          lacking.error ? (
            <Lost why={lacking.error} />
          ) : (
            WAITING
          )
        ) : base ? (
          <span>
            <b>{differenceText(baselineDiff(run, base, totalLayers.value, step), which)}</b> {measureName(which)}
            {asideText(figures, step)}
          </span>
        ) : figures && figures.total > 0 ? (
          <HeadShares figures={figures} step={step} />
        ) : (
          ABSENT.record
        )}
      </div>
      {sparse.value ? <Sparsity figures={figures} /> : null}
    </>
  );
}

/** @param place among the columns. */
export function RunHead({ run, width, place }: { run: Run; width: number; place: number }) {
  const overview = overviewOf(run.name).value;
  const audit = overview && violatedIn(run.name, overview.header.layers);
  const lost = listLost(run.name);
  const step = headPart(numberSteps, place).value;
  const detail = columnAnswers(run.name)[1];
  return (
    <div class="run-head" title={run.name}>
      <div class="run-head-name">
        <Marker color={run.color} shape={run.shape} />
        <RunName run={run} />
        {audit ? (
          <Badge
            run={run}
            channels={audit.channels}
            title={`${plural(audit.channels, "channel")} violated since step ${formatCount(audit.first.first_step)}. List them.`}
            onClick={() => listViolations(run.name)}
          />
        ) : lost ? (
          <Badge
            run={run}
            channels={overview?.header.violated_channels ?? 0}
            title={`The list of violations isn't loaded: ${lost}`}
            onClick={() => listViolations(run.name)}
          />
        ) : null}
        {detail && !detail.value && detail.error ? <Lost why={detail.error} what="detail not loaded" /> : null}
        {inSight(run.name) ? <OldSign small of={[...columnAnswers(run.name), blockAt(run, step)]} /> : null}
      </div>
      {inSight(run.name) ? (
        <>
          <Now run={run} width={width} step={step} />
          <Axis width={width} pill={place === 0} place={place} />
        </>
      ) : null}
    </div>
  );
}

/** What the strips of the column show, once they do. */
function Words({ run, width }: { run: Run; width: number }) {
  const base = baseOf(run);
  const answers: Named[] = [
    ["", overviewOf(run.name)],
    [base?.name ?? "", base && overviewOf(base.name)],
  ];
  const lacking = answers.filter(([, answer]) => answer && !answer.value);
  if (lacking.length > 0) return <Status of={lacking} />;
  if (!stripsOf(run)) return null;
  const figures = figuresAt(run, totalLayers.value, spokenStep.value);
  const apart = base && !lackingAt(run, cursor.value) ? `${baselineDiffText(run, base)}. ` : "";
  const label = `${run.name} at ${figures ? stepsText(figures) : stepText(spokenStep.value)}: ${apart}${sharesText(figures, blockAt(run, spokenStep.value))}`;
  return <div class="strips-label" role="img" aria-label={label} style={{ width: `${width}px` }} />;
}

/** The cell of a row at a step of the whole column: its layer, and the step within it. */
function cellOf(row: Row, pointed: number, width: number): { layer: string | null; step: number } | null {
  const cells = cellsIn(row, width);
  if (!cells) return null;
  const x = toPixel(scaleOf(width), pointed);
  const { place, from, to } = cellAt(cells.length, width, x);
  return { layer: cells[place], step: toStep(scaleOf(to - from), x - from) };
}

const moduleLabels = kept((modules: readonly string[]) => labelsOf(modules, (text) => pageTextWidth(text, 11)));

/** Of narrower labels not every one is shown. */
const MIN_LABEL = 18;

/** What the cells of repeated blocks are, above the first of them. */
function Modules({ layout, width }: { layout: Layout; width: number }) {
  return (
    <>
      {layout.places.map(({ row, stripTop, named }) => {
        if (named === 0 || row.kind !== "group" || !row.modules) return null;
        const cell = width / row.modules.length;
        const labels = moduleLabels(row.modules)(Math.max(cell - 6, MIN_LABEL));
        const every = Math.ceil(MIN_LABEL / Math.max(1, cell - 6));
        return (
          <div key={row.id} class="modules" style={{ top: `${stripTop - named}px` }} aria-hidden="true">
            {row.modules.map((name, i) => (
              <span key={name} style={{ width: `${cell}px` }}>
                {i % every === 0 ? labels.get(name) : ""}
              </span>
            ))}
          </div>
        );
      })}
    </>
  );
}

/** Says of rows that the run has none of their layers. */
function Absent({ run, places, width }: { run: Run; places: readonly Place[]; width: number }) {
  return (
    <>
      {places.map(({ row, stripTop, stripHeight }) =>
        lacks(run, row.layers) ? (
          <span
            key={`${row.kind} ${row.id}`}
            class="absent"
            style={{ top: `${stripTop}px`, width: `${width}px`, lineHeight: `${stripHeight}px` }}
          >
            {ABSENT.layerIn}
          </span>
        ) : null,
      )}
    </>
  );
}

interface ColumnProps {
  run: Run;
  layout: Layout;
  /** Those that are drawn. */
  places: readonly Place[];
  width: number;
}

export function RunColumn({ run, layout, places, width }: ColumnProps) {
  const pointer = stepPointer(width, (pointed, y) => {
    const row = placeAt(layout, y)?.row;
    const cell = row && cellOf(row, pointed, width);
    if (row && cell) {
      const open = () => cell.layer !== null && openLayer(cell.layer, run.name);
      return { step: recordStep(run, cell.step), run: run.name, row: cell.layer ?? row.id, open };
    }
    const step = recordStep(run, pointed);
    if (!row) return { step, silent: true };
    return {
      step,
      run: run.name,
      row: row.id,
      pick() {
        if (row.kind === "total") return;
        focusRow.value = row.id;
        update({ run: run.name });
      },
      open: () => row.kind === "layer" && openLayer(row.id, run.name),
    };
  });
  return (
    <div class="run-column" {...pointer} onPointerDown={(event) => startDrag(event, width)}>
      {inSight(run.name) ? <Words run={run} width={width} /> : null}
      {inSight(run.name) ? <Modules layout={layout} width={width} /> : null}
      {inSight(run.name) ? <Absent run={run} places={places} width={width} /> : null}
    </div>
  );
}

interface OutlineProps {
  layout: Layout;
  /** The width of a column. */
  column: number;
}

function Outline({ layout, column, run, row }: OutlineProps & { run: string | null; row: string | null }) {
  const place = shownRuns.value.findIndex(({ name }) => name === run);
  const width = column - GAP;
  const cellsOf = (other: Row) => cellsIn(other, width);
  const rowBox = layout.places.find((other) =>
    row === ""
      ? other.row.kind === "total"
      : other.row.id === row || (row !== null && cellsOf(other.row)?.includes(row)),
  );
  if (run === null || !rowBox || place < 0 || !inSight(run)) return null;
  const cells = rowBox.row.id === row ? null : cellsOf(rowBox.row);
  const cell = cells && width / cells.length;
  const left = cells && cell ? cells.indexOf(row) * cell : 0;
  const moved = movedTo(nameWidth.value + place * column + left, rowBox.stripTop - 2);
  const style = { width: `${(cell ? cell - 2 : width) + 4}px`, height: `${rowBox.stripHeight + 4}px` };
  return <div ref={moved} class="outline" style={style} />;
}

/**
 * Around the rows that the pointer and the keyboard are on: the pointer's, and the keyboard's where that is in another
 * column.
 */
export function Outlines(props: OutlineProps) {
  const { run = null, row = null } = hover.value ?? {};
  const chosen = row !== null && run === runName.value ? null : runName.value;
  return (
    <>
      <Outline {...props} run={chosen} row={focusRow.value} />
      <Outline {...props} run={run} row={row} />
    </>
  );
}
