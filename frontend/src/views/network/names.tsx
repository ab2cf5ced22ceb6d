/** The names of the rows, with their channels and the badge of violations. */

import { formatCount, plural } from "../../data/format";
import type { Row } from "../../data/layers";
import type { Place, Window } from "../../data/rowbox";
import { Icon } from "../../parts/widgets";
import { listLost, violatedIn } from "../../state/answers";
import { openLayer, openListed, toggleGroup } from "../../state/navigate";
import { retry } from "../../state/resource";
import { layers, type Run, shownRuns } from "../../state/runs";
import { focusRow } from "../../state/store";
import { nameBlock, nameWidth, rowLabel } from "../../state/viewport";

/** A row so low has no buttons, which would be too small to hit; J, K, Enter and V do the same. */
const LEAST_BUTTON = 20;

interface BadgeProps {
  run: Run;
  channels: number;
  title: string;
  onClick: () => void;
  /** Whether it is in a low row. */
  low?: boolean;
}

export function Badge({ run, channels, title, onClick, low }: BadgeProps) {
  if (low)
    return (
      <span class="badge" title={title}>
        <Icon name="warning" size={12} />
        {formatCount(channels)}
      </span>
    );
  return (
    <button type="button" class="badge" title={title} onClick={onClick}>
      <Icon name="warning" size={12} />
      {formatCount(channels)}
      <span class="offscreen"> violated in {run.name}</span>
    </button>
  );
}

function RowBadge({ row, low }: { row: Row; low: boolean }) {
  const audits = shownRuns.value.flatMap((run) => {
    const audit = violatedIn(run.name, row.layers);
    return audit ? [{ run, ...audit }] : [];
  });
  const lost = shownRuns.value.map((run) => listLost(run.name)).find((why) => why !== null);
  if (audits.length === 0) {
    return lost ? (
      <button
        type="button"
        class="badge lost"
        title={`Violations by layer aren't loaded: ${lost} Retry.`}
        onClick={retry}
      >
        ?<span class="offscreen"> violations not loaded. Retry</span>
      </button>
    ) : null;
  }
  const { run, channels, first } = audits.reduce((a, b) => (b.channels > a.channels ? b : a));
  const lines = audits.map(
    (audit) => `${audit.run.name}: ${formatCount(audit.channels)} since step ${formatCount(audit.first.first_step)}`,
  );
  const title = ["Violated channels", ...lines, "Show the first one."].join("\n");
  return <Badge run={run} channels={channels} title={title} low={low} onClick={() => openListed(run, first)} />;
}

/** What a row shows: the total's extent, or a button that folds the group or opens the layer. */
function Title({ row, low }: { row: Row; low: boolean }) {
  if (row.kind === "total") {
    return (
      <div class="net-total">
        <b>{row.label}</b>
        <span class="sub">
          {plural(row.layers.length, "layer")} · {plural(row.channels, "channel")}
        </span>
      </div>
    );
  }
  const group = row.kind === "group" ? { mark: row.closed ? "▶" : "▼", expanded: !row.closed } : null;
  const kind = group ? "group-name" : "layer-name";
  const title =
    row.kind === "group"
      ? `${row.id}: ${formatCount(row.layers.length)} layers`
      : `${row.layer.id}: ${row.layer.type}. Open the layer.`;
  const open = () => (group ? toggleGroup(row.id) : openLayer(row.id, null));
  const content = (
    <>
      {group ? (
        <span class="chevron" aria-hidden="true">
          {group.mark}
        </span>
      ) : null}
      <bdi>{rowLabel(row)}</bdi>
    </>
  );
  if (low)
    return (
      // biome-ignore lint/a11y/noStaticElementInteractions lint/a11y/useKeyWithClickEvents: J and K go to it, Enter opens it
      <span class={`plain ${kind}`} title={title} onClick={open}>
        {content}
      </span>
    );
  return (
    <button type="button" class={`plain ${kind}`} aria-expanded={group?.expanded} title={title} onClick={open}>
      {content}
    </button>
  );
}

function Name({ place: { row, ruled, top, height, stripTop, stripHeight } }: { place: Place }) {
  const inner = row.kind !== "total";
  const style = {
    top: `${top}px`,
    width: `${nameWidth.value}px`,
    height: `${height}px`,
    paddingTop: `${stripTop - top - (inner ? 1 : 0)}px`,
    paddingLeft: `${14 + (inner ? 22 + row.depth * 14 : 0)}px`,
  };
  const selected = inner && focusRow.value === row.id;
  const low = inner && stripHeight < LEAST_BUTTON;
  return (
    <div
      class={`net-name ${row.kind} ${ruled ? "ruled" : ""} ${selected ? "selected" : ""} ${stripHeight < 14 ? "low" : ""}`}
      style={style}
    >
      <div class="net-name-line" style={{ height: `${stripHeight + (inner ? 2 : 0)}px` }}>
        <Title row={row} low={low} />
        <RowBadge row={row} low={low} />
        {inner ? (
          <span class="channels">
            {formatCount(row.channels)}
            {row.kind === "group" || row.id === layers.value[0]?.id ? " ch" : ""}
          </span>
        ) : null}
      </div>
    </div>
  );
}

export function Names({ windowAt }: { windowAt: (block: number) => Window }) {
  return (
    <div class="net-names">
      {windowAt(nameBlock.value).places.map((place) => (
        <Name key={`${place.row.kind} ${place.row.id}`} place={place} />
      ))}
    </div>
  );
}
