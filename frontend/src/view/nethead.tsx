/** The sticky head of a run's column: name, stacked bar and two numbers at the cursor, and the axis. */

import { formatCount, formatShare, formatShort } from "../model/format";
import { sumOf } from "../model/overview";
import { stepTicks, toPixel } from "../model/scale";
import { readAt, violations } from "../model/series";
import { LEGEND, STATE_NAMES } from "../model/states";
import { openViolation } from "./actions";
import { Icon, Marker, RunName } from "./bits";
import { cursor, readStep } from "./cursor";
import { layers, overviewOf, type Run, range, rows, scaleOf } from "./data";
import { largest, sharesText } from "./words";

/** Round ticks under a strip; the cursor's step as a pill, which hides the ticks that it would cover. */
export function Axis({ width, pill, count }: { width: number; pill: boolean; count?: number }) {
  const scale = scaleOf(width);
  const at = toPixel(scale, readStep.value);
  const inside = at >= 0 && at <= width;
  const text = formatCount(readStep.value);
  const half = pill && inside ? text.length * 3.6 + 12 : 0;
  const ticks = stepTicks(range.value[0], range.value[1], count ?? Math.max(2, Math.floor(width / 33)));
  return (
    <div class="axis" style={{ width: `${width}px` }} aria-hidden="true">
      {ticks.map((tick) => {
        const x = toPixel(scale, tick);
        const own = formatShort(tick).length * 3;
        if (half > 0 && Math.abs(x - at) < half + own) return null;
        const left = Math.min(Math.max(x, own), width - own);
        return (
          <span key={tick} class="tick" style={{ left: `${left}px` }}>
            {formatShort(tick)}
          </span>
        );
      })}
      {half > 0 ? (
        <span class="pill" style={{ left: `${Math.min(Math.max(at, half - 6), width - half + 6)}px` }}>
          {text}
        </span>
      ) : null}
    </div>
  );
}

export function RunHead({ run, width, first }: { run: Run; width: number; first: boolean }) {
  const overview = overviewOf(run.name).value;
  const total = overview && sumOf(overview, rows.value[0]?.layers ?? []);
  const readout = total ? readAt(total, readStep.value) : null;
  const fixed = total ? readAt(total, cursor.value) : null;
  const all = overview
    ? sumOf(
        overview,
        layers.value.map((layer) => layer.id),
      )
    : null;
  const found = all ? violations(all) : null;
  return (
    <div class="run-head" title={run.name}>
      <div class="run-head-name">
        <Marker color={run.color} shape={run.shape} />
        <RunName text={run.name} />
        {found ? (
          <button
            type="button"
            class="badge"
            title={`${formatCount(found.most)} channels moved although held, from step ${formatCount(found.firstStep)}. Show the first one.`}
            onClick={() =>
              openViolation(
                run.name,
                layers.value.map((layer) => layer.id),
              )
            }
          >
            <Icon name="warning" size={12} />
            {formatCount(found.most)}
            <span class="offscreen"> violated in {run.name}</span>
          </button>
        ) : null}
      </div>
      <div class="bar" style={{ width: `${width}px` }} role="img" aria-label={`${run.name}: ${sharesText(fixed)}`}>
        {readout
          ? LEGEND.filter((state) => readout.counts[state] > 0).map((state) => (
              <span key={state} class={`fill-${STATE_NAMES[state]}`} style={{ flexGrow: readout.counts[state] }} />
            ))
          : null}
      </div>
      <div class="two">
        {readout && readout.total > 0
          ? largest(readout).map((entry, i) => (
              <span key={entry.state}>
                {i > 0 ? " · " : ""}
                <b>{formatShare(entry.count, readout.total)}</b> {STATE_NAMES[entry.state]}
              </span>
            ))
          : "no record here"}
      </div>
      <Axis width={width} pill={first} />
    </div>
  );
}
