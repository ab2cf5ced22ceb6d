/** The polite live region: what the keys led to, read out once they have come to rest. */

import { useEffect, useRef } from "preact/hooks";
import { deltaAt, recordAt, seriesOf } from "../../model/cells";
import { formatCount, formatNumber } from "../../model/format";
import { sumOf } from "../../model/overview";
import { readAt } from "../../model/series";
import { STATE_BITS, STATE_NAMES, VIOLATED } from "../../model/states";
import { spokenPair } from "../compare/overlaps";
import { activeProbed } from "../function/places";
import { functionText } from "../function/tip";
import { sharesText } from "../shared/words";
import { against, apartText } from "../state/baseline";
import { cursor } from "../state/cursor";
import { activeLayer, activeRun, cellsOf, rows, shownRuns } from "../state/data";
import { overviewAt } from "../state/detail";
import { channel, focusRow, page, spoken, view } from "../state/store";

const REST_MS = 400;

function spokenLayer(): string {
  const [run, layer, own] = [activeRun.value, activeLayer.value, channel.value];
  const cells = run && layer ? cellsOf(run.name, layer.id).value : null;
  if (!run || !layer || !cells) return "";
  const start = `Step ${formatCount(cursor.value)}, ${run.name}, ${layer.id}`;
  const record = recordAt(cells, cursor.value);
  if (own === null || own >= cells.channels || record < 0) {
    return `${start}: ${sharesText(readAt(seriesOf(cells), cursor.value))}`;
  }
  const at = own * cells.records + record;
  const moved = cells.state[at] & VIOLATED ? ", moved although held" : "";
  return `${start}, channel ${own}: ${STATE_NAMES[cells.state[at] & STATE_BITS]}${moved}, Δ ${formatNumber(deltaAt(cells, at))}`;
}

function spokenRow(): string {
  const run = shownRuns.value.find((one) => one.name === page.value.run) ?? shownRuns.value[0];
  const row = rows.value.find((one) => one.kind !== "total" && one.id === focusRow.value) ?? rows.value[0];
  const overview = run && overviewAt(run.name, cursor.value);
  if (!overview || !row) return "";
  const base = against(run);
  const series = sumOf(overview, row.layers);
  const apart = base ? `${apartText(run, base, row.layers)}. ` : "";
  const what = row.kind === "total" ? row.label : row.id;
  return `Step ${formatCount(cursor.value)}, ${run.name}, ${what}: ${apart}${sharesText(series && readAt(series, cursor.value))}`;
}

const SENTENCES = {
  network: spokenRow,
  layer: spokenLayer,
  compare: spokenPair,
  function: () => functionText(activeProbed.value, cursor.value),
};

export function Spoken() {
  const { step, layer, run, other, place } = page.value;
  const key = JSON.stringify([view.value, step, layer, run, other, place, channel.value, focusRow.value]);
  const first = useRef(key);
  useEffect(() => {
    if (key === first.current) return;
    first.current = "";
    const said = spoken.peek();
    const timer = setTimeout(() => {
      // What a key said by itself goes before.
      if (spoken.peek() === said) spoken.value = SENTENCES[view.peek()]();
    }, REST_MS);
    return () => clearTimeout(timer);
  }, [key]);
  return (
    <div class="offscreen" role="status" aria-live="polite">
      {spoken.value}
    </div>
  );
}
