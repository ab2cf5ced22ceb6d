/** The Network view: "is it still learning?" Layers as rows, runs as columns, a strip in each cell. */

import { batch } from "@preact/signals";
import { useLayoutEffect, useMemo } from "preact/hooks";
import { ABSENT, DASH } from "../../data/absent";
import { formatCount, formatShare } from "../../data/format";
import { keptByValue } from "../../data/kept";
import { differenceText } from "../../data/measure";
import type { Figures } from "../../data/record";
import {
  blockOf,
  cellsIn,
  DOTS_WIDTH,
  drawnWindow,
  GAP,
  type Layout,
  type Place,
  placeAt,
  placeRows,
  type Window,
} from "../../data/rowbox";
import { LISTED, NONFINITE, STATE_TITLES } from "../../data/states";
import { MEASURE_TITLES } from "../../data/urlstate";
import { useSize } from "../../parts/canvas";
import { Crosshairs, pointNowhere, type RowProps, ZoomBoxes } from "../../parts/plot";
import { DataTable, Notes, Skeleton, Status, TableButton } from "../../parts/widgets";
import { asideText, pastsText, sharesText, stepsText, weightsText } from "../../parts/words";
import { overviewOf, sparse } from "../../state/answers";
import { blockAt, figuresAt } from "../../state/at";
import { baselineDiff, baselineDiffText, baselineRun, baseOf, differs, lackingAt } from "../../state/baseline";
import { cursor } from "../../state/cursor";
import { openLayer, stepRun, toggleGroup } from "../../state/navigate";
import { insteadText } from "../../state/resource";
import { rows } from "../../state/rows";
import { activeLayer, layers, listed, type Run, shownRuns, viewedSteps } from "../../state/runs";
import { focusRow, hover, layerFilter, measure, page, tables } from "../../state/store";
import {
  columnWidth,
  dotsStay,
  nameWidth,
  netHeight,
  netWidth,
  scrollBack,
  scrollDown,
  scrolledBy,
  sight,
  stripBlock,
} from "../../state/viewport";
import css from "../../style/network.css";
import { runFiles, type View } from "../view";
import { Outlines, RunColumn, RunHead } from "./column";
import { DotsColumn, DotsHead } from "./dots";
import { Names } from "./names";
import { Strips } from "./strips";

const HEAD_HEIGHT = 98;
/** What the line of pruned weights adds. */
const WEIGHTS_HEIGHT = 16;
/** Narrower columns put the second number on its own line. */
const NARROW = 190;

const template = (): string =>
  `${nameWidth.value}px repeat(${shownRuns.value.length}, ${columnWidth.value}px) ${DOTS_WIDTH}px`;

function Body({ layout, height }: { layout: Layout; height: number }) {
  const column = columnWidth.value;
  const [first, end] = sight.value;
  const windowAt = useMemo(() => keptByValue((block: number) => drawnWindow(layout, block, height)), [layout, height]);
  const window = windowAt(stripBlock.value);
  const pictures = {
    width: column - GAP,
    pitch: column,
    count: end - first,
    left: nameWidth.value + first * column,
    top: window.top,
    height: window.bottom - window.top,
  };
  return (
    <div class="net-body" style={{ height: `${layout.height}px`, gridTemplateColumns: template() }}>
      <Strips layout={layout} windowAt={windowAt} {...pictures} />
      <Names windowAt={windowAt} />
      {shownRuns.value.map((run) => (
        <RunColumn key={run.name} run={run} layout={layout} places={window.places} width={column - GAP} />
      ))}
      <DotsColumn windowAt={windowAt} layout={layout} />
      <Outlines layout={layout} column={column} />
      <Cursors window={window} {...pictures} />
      <ZoomBoxes {...pictures} />
    </div>
  );
}

/** Rows of a window that follow one another and have as many cells, or none. */
function bandsOf({ places, top, bottom }: Window, width: number) {
  const bands: { top: number; bottom: number; cells: number }[] = [];
  for (const { row, top: above, height, named } of places) {
    const cells = cellsIn(row, width)?.length ?? 0;
    const from = Math.max(top, above + (cells > 0 ? named : 0));
    const last = bands[bands.length - 1];
    if (last?.cells === cells && named === 0) last.bottom = Math.min(bottom, above + height);
    else bands.push({ top: from, bottom: Math.min(bottom, above + height), cells });
  }
  return bands;
}

/** In narrower cells lines would cover the pictures. */
const LEAST_CURSOR = 24;

/** The cursor in all columns; in each cell its own. */
function Cursors({ window, width, pitch, count, left }: RowProps & { window: Window }) {
  return (
    <>
      {bandsOf(window, width).flatMap(({ top, bottom, cells }) => {
        const height = bottom - top;
        if (cells === 0) return <Crosshairs key={top} {...{ width, pitch, count, left, top, height }} />;
        const cell = width / cells;
        if (cell < LEAST_CURSOR) return [];
        return Array.from({ length: count }, (_, place) => (
          <Crosshairs
            key={`${top} ${place}`}
            {...{ width: cell - 2, pitch: cell, count: cells, left: (left ?? 0) + place * pitch, top, height }}
          />
        ));
      })}
    </>
  );
}

function NetworkTable() {
  const base = differs.value ? baselineRun.value : null;
  const numbers = [
    ...["Channels", "Step", ...listed.value.map((state) => STATE_TITLES[state]), "Violated", STATE_TITLES[NONFINITE]],
    ...(sparse.value ? ["Sparsity"] : []),
    ...(base ? [`${MEASURE_TITLES[measure.value]} vs ${base.name}`] : []),
  ];
  const lines = rows.value.flatMap((row) =>
    shownRuns.value.map((run) => {
      const figures = figuresAt(run, row.layers, cursor.value);
      const instead = insteadText(blockAt(run, cursor.value), DASH);
      const of = (text: (figures: Figures) => string | null) => (figures ? (text(figures) ?? DASH) : instead);
      const lacking = lackingAt(run, cursor.value);
      const difference = (own: Run, other: Run) =>
        lacking
          ? insteadText(lacking)
          : differenceText(baselineDiff(own, other, row.layers, cursor.value), measure.value);
      return [
        row.kind === "layer" ? row.id : row.kind === "group" ? `${row.id}/` : row.label,
        run.name,
        of(({ channels }) => formatCount(channels)),
        of((own) => stepsText(own).replace(/^steps? /, "")),
        ...listed.value.map((state) =>
          of(({ counts, total }) => `${formatCount(counts[state])} (${formatShare(counts[state], total)})`),
        ),
        of(({ violated }) => formatCount(violated)),
        of(({ counts }) => formatCount(counts[NONFINITE])),
        ...(sparse.value ? [of(weightsText)] : []),
        ...(base ? [difference(run, base)] : []),
      ];
    }),
  );
  return (
    <DataTable
      caption={`Channels in each state at step ${formatCount(cursor.value)}`}
      columns={["Layer", "Run", ...numbers]}
      texts={["Layer", "Run"]}
      rows={lines}
    />
  );
}

/** Which columns don't fit. */
function outOfSight(): string | null {
  const [first, end] = sight.value;
  const all = shownRuns.value.length;
  if (tables.value.has("network") || end - first >= all) return null;
  return `Runs ${first + 1} to ${end} of ${all} are in sight. Scroll to the right for the others, or untick some.`;
}

/** The row that the keyboard is on. */
const focusedRow = () => rows.value.find(({ kind, id }) => kind !== "total" && id === focusRow.value);

const bodyTop = (net: HTMLElement, head: number): number => net.getBoundingClientRect().top + head - net.scrollTop;

/** Another row has come under the pointer, which rests. */
function pointRow(place: Place | null): void {
  const now = hover.peek();
  if (now === null || now.row === place?.row.id) return;
  hover.value = place && { ...now, row: place.row.id };
}

function NetworkView() {
  const { ref, size } = useSize<HTMLDivElement>();
  const shown: Run[] = shownRuns.value;
  const list = rows.value;
  const column = columnWidth.value;
  const narrow = column - GAP < NARROW;
  const head = HEAD_HEIGHT + (narrow ? 14 : 0) + (sparse.value ? WEIGHTS_HEIGHT : 0);
  const layout = useMemo(
    () => placeRows(list, size.height - head - 8, column - GAP),
    [list, size.height, head, column],
  );
  const empty = shown.length === 0 || list.length === 0;
  const asTable = tables.value.has("network");
  const first = shown.every((run) => overviewOf(run.name).value === null && overviewOf(run.name).loading);
  const title = (
    <>
      <h1>Is it still learning?</h1>
      <TableButton panel="network" what="the network" />
    </>
  );

  useLayoutEffect(() => {
    if (size.width > 0)
      batch(() => {
        netWidth.value = size.width;
        netHeight.value = size.height;
      });
  }, [size.width, size.height]);
  useLayoutEffect(() => scrollBack, []);
  // The keyboard's row stays in sight.
  useLayoutEffect(() => {
    const scroller = ref.current;
    const focused = focusedRow();
    const place = layout.places.find(({ row }) => row === focused);
    if (!scroller || !place) return;
    const lowest = place.top + place.height - (scroller.clientHeight - head);
    scroller.scrollTop = Math.min(place.top, Math.max(scroller.scrollTop, lowest));
  }, [focusRow.value]);

  return (
    <section class="panel network" aria-label="Network: share of channels in each state, by layer and run">
      <Notes texts={[pastsText(shown), outOfSight()]} />
      {asTable && !empty ? (
        <>
          <div class="panel-top">{title}</div>
          <Status of={shown.map((run) => [run.name, blockAt(run, cursor.value)] as const)} />
        </>
      ) : null}
      <div
        class="net"
        ref={ref}
        role="region"
        aria-label="Layers by runs"
        tabIndex={0}
        onScroll={({ currentTarget: net }) => {
          scrollDown(blockOf(net.scrollTop));
          const aside = net.scrollLeft !== scrolledBy.value;
          pointRow(aside ? null : placeAt(layout, (hover.value?.y ?? 0) - bodyTop(net, head)));
          scrolledBy.value = net.scrollLeft;
        }}
        onPointerLeave={pointNowhere}
      >
        {empty ? (
          <p class="message">
            {shown.length === 0
              ? `${ABSENT.runs}. Tick a run on the left, or change the filter for runs.`
              : `${ABSENT.layer} '${layerFilter.value.text}'. Change the filter for layers.`}
          </p>
        ) : null}
        {!empty && asTable ? <NetworkTable /> : null}
        {!empty && !asTable ? (
          <div
            class={`net-inner ${dotsStay.value ? "" : "rolling"}`}
            style={{ width: `${Math.max(size.width, nameWidth.value + DOTS_WIDTH + column * shown.length)}px` }}
          >
            <div
              class={`net-head ${narrow ? "narrow" : ""} ${sparse.value ? "weighted" : ""}`}
              style={{ height: `${head}px`, gridTemplateColumns: template() }}
            >
              <div class="net-title">
                <div class="net-title-line">{title}</div>
                <p>
                  {differs.value
                    ? `${MEASURE_TITLES[measure.value]}: difference from ${baselineRun.value?.name}, by layer`
                    : "Share of channels in each state, by layer"}{" "}
                  (input at top)
                </p>
              </div>
              {shown.map((run, i) => (
                <RunHead key={run.name} run={run} width={column - GAP} place={i} />
              ))}
              <DotsHead />
            </div>
            {first ? <Skeleton height={420} /> : <Body layout={layout} height={size.height - head} />}
          </div>
        ) : null}
      </div>
    </section>
  );
}

function speak(): string {
  const run = shownRuns.value.find(({ name }) => name === page.value.run) ?? shownRuns.value[0];
  const row = focusedRow() ?? rows.value[0];
  if (!run || !row) return "";
  const base = baseOf(run);
  const figures = figuresAt(run, row.layers, cursor.value);
  const difference = base && !lackingAt(run, cursor.value) ? `${baselineDiffText(run, base, row.layers)}. ` : "";
  const what = row.kind === "total" ? row.label : row.id;
  return `Step ${formatCount(cursor.value)}, ${run.name}, ${what}: ${difference}${sharesText(figures, blockAt(run, cursor.value))}${asideText(figures, cursor.value)}`;
}

export const network: View = {
  component: NetworkView,
  css,
  steps: () => viewedSteps.value,
  layer: () => layers.value.find(({ id }) => id === focusRow.value)?.id ?? activeLayer.value?.id ?? null,
  keys: {
    layer(by) {
      const walk = rows.value.filter((row) => row.kind !== "total");
      const place = walk.findIndex((row) => row.id === focusRow.value);
      const next = walk[Math.min(walk.length - 1, Math.max(0, place + by))];
      if (next) focusRow.value = next.id;
    },
    run: (by) => stepRun(shownRuns.value, page.peek().run, by),
    down() {
      const row = focusedRow();
      if (row?.kind === "group") toggleGroup(row.id);
      else if (row?.kind === "layer") openLayer(row.id, null);
    },
    up() {
      focusRow.value = null;
      return true;
    },
  },
  speak,
  caption: () => "Network",
  states: LISTED,
  files: () => runFiles(shownRuns.value, null),
};
