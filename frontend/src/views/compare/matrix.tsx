/** Overlap of each pair of runs at the cursor, the choice of A and B, and what their numbers mean. */

import { formatCount, plural } from "../../data/format";
import { formatOverlap, numbersText, pairOf, pairTexts, REASONS, setText } from "../../data/overlap";
import { MASK_KINDS, UNITS } from "../../data/urlstate";
import { overlapStyle } from "../../draw/difference";
import { useSize } from "../../parts/canvas";
import { pointAt, pointNowhere } from "../../parts/plot";
import { DataTable, Gradient, Marker, RunName, Switch, TableButton, Waiting } from "../../parts/widgets";
import type { OverlapAnswer, OverlapPair } from "../../server/types";
import { cursor } from "../../state/cursor";
import { comparedRuns, counted, overlapOf, type Pair, pairOverlap } from "../../state/overlaps";
import type { Run } from "../../state/runs";
import { maskKind, tables, theme, update } from "../../state/store";

const NAMES = 108;
const textsOf = (answer: OverlapAnswer, pair: OverlapPair) => pairTexts(pair, answer.runs, answer.unit, answer.mask);

function Cell({ answer, pair, on, size }: { answer: OverlapAnswer; pair: OverlapPair; on: boolean; size: number }) {
  const style = pair.overlap === null ? undefined : overlapStyle(theme.value, pair.overlap);
  const names = `${answer.runs[pair.a].name} vs ${answer.runs[pair.b].name}`;
  return (
    <td
      class={`${on ? "on" : ""} ${pair.comparable ? "" : pair.reason === "origin" ? "striped" : "dotted"}`}
      style={style}
      onPointerMove={(event) =>
        pointAt(event, {
          // The cell is of no step: what is read follows the cursor.
          get step() {
            return cursor.value;
          },
          tip: [names, numbersText(pair), ...textsOf(answer, pair)],
        })
      }
    >
      {pair.comparable && size >= 28 ? formatOverlap(pair.overlap) : <span class="offscreen">{numbersText(pair)}</span>}
      {pair.comparable && size >= 40 ? <small>{formatOverlap(pair.chance)}</small> : null}
    </td>
  );
}

/** Runs by their initialization, where several share each of them: other pairs can't be compared. */
function blocksOf(list: readonly Run[]): Run[][] {
  const byOrigin = new Map<string | null, Run[]>();
  for (const run of list) byOrigin.set(run.origin, [...(byOrigin.get(run.origin) ?? []), run]);
  const blocks = [...byOrigin.values()];
  const apart = blocks.filter((block) => block.length > 1).length > 1;
  return apart ? blocks.filter((block) => block.length > 1) : [[...list]];
}

/** A matrix for each initialization. */
function Matrices({ answer, pair }: { answer: OverlapAnswer; pair: Pair }) {
  const blocks = blocksOf(comparedRuns.value);
  const alone = comparedRuns.value.length - blocks.reduce((sum, block) => sum + block.length, 0);
  return (
    <>
      {blocks.map((block, i) => (
        <div key={block[0].name}>
          {blocks.length > 1 ? <p class="sub">Initialization {i + 1}</p> : null}
          <Matrix answer={answer} pair={pair} list={block} />
        </div>
      ))}
      {alone > 0 ? <p class="sub">{plural(alone, "run")} that share their initialization with no other</p> : null}
      <Key answer={answer} />
    </>
  );
}

function Matrix({ answer, pair, list }: { answer: OverlapAnswer; pair: Pair; list: readonly Run[] }) {
  const { ref, size } = useSize<HTMLDivElement>();
  const width = Math.max(6, Math.min(52, Math.floor((size.width - NAMES) / list.length) - 2));
  const height = width >= 40 ? 34 : Math.max(12, Math.min(width, 24));
  const choose = (event: MouseEvent) => {
    const cell = (event.target as Element).closest("td");
    if (!cell) return;
    const [run, other] = [list[(cell.parentElement as HTMLTableRowElement).rowIndex - 1], list[cell.cellIndex - 1]];
    if (run !== other) update({ run: run.name, other: other.name });
  };
  const cellOf = (run: Run, other: Run) => {
    const overlap = run === other ? null : pairOf(answer, run.name, other.name);
    if (!overlap) return <td key={other.name}>{run === other ? "·" : ""}</td>;
    const on = pair.includes(run) && pair.includes(other);
    return <Cell key={other.name} answer={answer} pair={overlap} on={on} size={width} />;
  };
  return (
    <div ref={ref} class="matrix-place">
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the lists under the matrix and [ ] { } choose by keyboard */}
      <table class="matrix" onClick={choose} onPointerLeave={pointNowhere}>
        <caption class="offscreen">Overlap of each pair of runs, small number: expected by chance</caption>
        <thead>
          <tr>
            <td style={{ width: `${NAMES}px` }} />
            {list.map((run) => (
              <th key={run.name} scope="col" title={run.name} style={{ width: `${width + 2}px` }}>
                <Marker color={run.color} shape={run.shape} size={Math.min(10, width)} />
                <span class="offscreen">{run.name}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {list.map((run) => (
            <tr key={run.name} style={{ height: `${height}px` }}>
              <th scope="row" title={run.name} class={pair.includes(run) ? "own" : ""}>
                <div>
                  <Marker color={run.color} shape={run.shape} size={9} />
                  <RunName run={run} />
                </div>
              </th>
              {list.map((other) => cellOf(run, other))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What the colours mean, and the reasons for which cells have none. */
function Key({ answer }: { answer: OverlapAnswer }) {
  const reasons = [...new Set(answer.pairs.flatMap((pair) => pair.reason ?? []))];
  const [apart, rest] = [true, false].map((own) => reasons.filter((reason) => (reason === "origin") === own));
  return (
    <div class="matrix-key sub">
      0 <Gradient stops={theme.value.overlap} /> 1
      {answer.runs.length <= 6 ? <span>small number: expected by chance</span> : null}
      {[apart, rest].map((list, i) =>
        list.length > 0 ? (
          <span key={i}>
            <i class={`swatch ${i ? "dotted" : "striped"}`} /> {list.map((reason) => REASONS[reason]).join(", ")}
          </span>
        ) : null,
      )}
    </div>
  );
}

function Choice({ label, run, onName }: { label: string; run: Run; onName: (name: string) => void }) {
  return (
    <label>
      <Marker color={run.color} shape={run.shape} />
      <span class="offscreen">{label}</span>
      <select value={run.name} title={run.name} onChange={(event) => onName(event.currentTarget.value)}>
        {comparedRuns.value.map(({ name, short }) => (
          <option key={name} value={name}>
            {short}
          </option>
        ))}
      </select>
    </label>
  );
}

function ChosenPair({ answer, pair: [a, b] }: { answer: OverlapAnswer | null; pair: Pair }) {
  const overlap = pairOverlap.value;
  const numbers = (
    <>
      <b>{formatOverlap(overlap?.overlap ?? null)}</b>, by chance <b>{formatOverlap(overlap?.chance ?? null)}</b>.{" "}
    </>
  );
  return (
    <div class="pair">
      <div class="pair-runs">
        <Choice label="Run A" run={a} onName={(run) => update({ run, other: run === b.name ? a.name : b.name })} />
        <span aria-hidden="true">vs</span>
        <Choice label="Run B" run={b} onName={(other) => update({ run: other === a.name ? b.name : a.name, other })} />
      </div>
      {answer && overlap ? (
        <p>
          {overlap.comparable ? numbers : null}
          <span class="sub">{textsOf(answer, overlap).join(" ")}</span>
        </p>
      ) : null}
    </div>
  );
}

function PairsTable({ answer }: { answer: OverlapAnswer; pair: Pair }) {
  const count = (value: number | null) => (value === null ? "–" : formatCount(value));
  return (
    <DataTable
      caption={`IoU of ${setText(answer.unit, answer.mask)} at step ${formatCount(answer.step)}`}
      columns={["Run", "Other run", "Overlap", "By chance", "In both", "In either", "Layers", "Unmatched", "Reason"]}
      texts={["Run", "Other run", "Reason"]}
      rows={answer.pairs.map((pair) => [
        answer.runs[pair.a].name,
        answer.runs[pair.b].name,
        formatOverlap(pair.overlap),
        formatOverlap(pair.chance),
        count(pair.intersection),
        count(pair.union),
        pair.layers,
        pair.unmatched,
        pair.comparable ? "" : numbersText(pair),
      ])}
    />
  );
}

function Toggles() {
  return (
    <div class="controls">
      <Switch
        label="What is counted"
        options={UNITS}
        titles={{ weights: "Weights", channels: "Channels" }}
        value={counted.value}
        onPick={(value) => update({ unit: value })}
      />
      <Switch
        label="Which mask"
        options={MASK_KINDS}
        titles={{ kept: "Remaining", trainable: "Trainable" }}
        value={maskKind.value}
        onPick={(value) => update({ maskKind: value })}
      />
    </div>
  );
}

export function MatrixPanel({ pair }: { pair: Pair }) {
  const asked = overlapOf();
  const answer = asked.value;
  const Shown = tables.value.has("overlap") ? PairsTable : Matrices;
  return (
    <div class="matrix-part">
      <div class="panel-line">
        <h1>Mask overlap</h1>
        <span class="sub">
          {answer ? `IoU of ${setText(answer.unit, answer.mask)}, step ${formatCount(answer.step)}` : ""}
        </span>
        <TableButton panel="overlap" what="the overlaps" />
      </div>
      <Toggles />
      <Waiting answer={asked} height={190} />
      {answer ? <Shown answer={answer} pair={pair} /> : null}
      <ChosenPair answer={answer} pair={pair} />
    </div>
  );
}
