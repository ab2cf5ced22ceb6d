/** The names of the rows, with their channels and the badge of violations. */

import { formatCount, plural } from "../../data/format";
import type { Row } from "../../data/layers";
import type { Place, Window } from "../../data/rowbox";
import { Icon } from "../../parts/widgets";
import { violatedIn } from "../../state/answers";
import { openLayer, openListed, toggleGroup } from "../../state/navigate";
import { layers, type Run, shownRuns } from "../../state/runs";
import { focusRow } from "../../state/store";
import { nameBlock } from "../../state/viewport";

export function Badge(props: { run: Run; channels: number; title: string; onClick: () => void }) {
  const { run, channels, title, onClick } = props;
  return (
    <button type="button" class="badge" title={title} onClick={onClick}>
      <Icon name="warning" size={12} />
      {formatCount(channels)}
      <span class="offscreen"> violated in {run.name}</span>
    </button>
  );
}

function RowBadge({ row }: { row: Row }) {
  const audits = shownRuns.value.flatMap((run) => {
    const audit = violatedIn(run.name, row.layers);
    return audit ? [{ run, ...audit }] : [];
  });
  if (audits.length === 0) return null;
  const { run, channels, first } = audits.reduce((a, b) => (b.channels > a.channels ? b : a));
  const lines = audits.map(
    (audit) => `${audit.run.name}: ${formatCount(audit.channels)} since step ${formatCount(audit.first.first_step)}`,
  );
  const title = ["Violated channels", ...lines, "Show the first one."].join("\n");
  return <Badge run={run} channels={channels} title={title} onClick={() => openListed(run, first)} />;
}

function Name({ place }: { place: Place }) {
  const { row } = place;
  const style = {
    top: `${place.top}px`,
    height: `${place.height}px`,
    paddingTop: `${place.stripTop - place.top - (row.kind === "total" ? 0 : 1)}px`,
    paddingLeft: `${14 + (row.kind === "total" ? 0 : 22 + row.depth * 14)}px`,
  };
  const selected = row.kind !== "total" && focusRow.value === row.id;
  return (
    <div class={`net-name ${row.kind} ${place.ruled ? "ruled" : ""} ${selected ? "selected" : ""}`} style={style}>
      <div class="net-name-line" style={{ height: `${place.stripHeight + (row.kind === "total" ? 0 : 2)}px` }}>
        {row.kind === "total" ? (
          <div class="net-total">
            <b>{row.label}</b>
            <span class="sub">
              {plural(row.layers.length, "layer")} · {plural(row.channels, "channel")}
            </span>
          </div>
        ) : (
          <button
            type="button"
            class={`plain ${row.kind}-name`}
            aria-expanded={row.kind === "group" ? !row.closed : undefined}
            title={
              row.kind === "group"
                ? `${row.id}: ${formatCount(row.layers.length)} layers`
                : `${row.layer.id}: ${row.layer.type}. Open the layer.`
            }
            onClick={() => (row.kind === "group" ? toggleGroup(row.id) : openLayer(row.id, null))}
          >
            {row.kind === "group" ? (
              <span class="chevron" aria-hidden="true">
                {row.closed ? "▶" : "▼"}
              </span>
            ) : null}
            <bdi>{row.label}</bdi>
          </button>
        )}
        <RowBadge row={row} />
        {row.kind === "total" ? null : (
          <span class="channels">
            {formatCount(row.channels)}
            {row.kind === "group" || row.id === layers.value[0]?.id ? " ch" : ""}
          </span>
        )}
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
