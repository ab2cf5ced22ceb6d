/** The names of the rows, with their channels and the badge of violations. */

import { formatCount, plural } from "../../data/format";
import type { Row } from "../../data/layers";
import type { Place, Window } from "../../data/rowbox";
import { Icon } from "../../parts/widgets";
import { violatedIn } from "../../state/answers";
import { openLayer, openListed, toggleGroup } from "../../state/navigate";
import { layers, shownRuns } from "../../state/runs";
import { focusRow } from "../../state/store";
import { nameBlock } from "../../state/viewport";

function Badge({ row }: { row: Row }) {
  const found = shownRuns.value.flatMap((run) => {
    const violated = violatedIn(run.name, row.layers);
    return violated ? [{ run, ...violated }] : [];
  });
  if (found.length === 0) return null;
  const worst = found.reduce((a, b) => (b.channels > a.channels ? b : a));
  const text = found
    .map(
      (entry) => `${entry.run.name}: ${formatCount(entry.channels)} since step ${formatCount(entry.first.first_step)}`,
    )
    .join("\n");
  return (
    <button
      type="button"
      class="badge"
      title={`Violated channels\n${text}\nShow the first one.`}
      onClick={() => openListed(worst.run, worst.first)}
    >
      <Icon name="warning" size={12} />
      {formatCount(worst.channels)}
      <span class="offscreen"> violated in {worst.run.name}</span>
    </button>
  );
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
        ) : null}
        {row.kind === "group" ? (
          <button
            type="button"
            class="plain group-name"
            aria-expanded={!row.closed}
            title={`${row.id}: ${formatCount(row.layers.length)} layers`}
            onClick={() => toggleGroup(row.id)}
          >
            <span class="chevron" aria-hidden="true">
              {row.closed ? "▶" : "▼"}
            </span>
            <bdi>{row.label}</bdi>
          </button>
        ) : null}
        {row.kind === "layer" ? (
          <button
            type="button"
            class="plain layer-name"
            title={`${row.layer.id}: ${row.layer.type}. Open the layer.`}
            onClick={() => openLayer(row.id, null)}
          >
            <bdi>{row.label}</bdi>
          </button>
        ) : null}
        <Badge row={row} />
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
