/** Values or differences to the baseline: the toggle, the tag of the baseline, and the scale of differences. */

import { differenceTicks, MEASURE_TITLES } from "../data/measure";
import { blend } from "../draw/theme";
import { Button } from "../parts/widgets";
import { baselineRun, canDiffer, differs, isBaseline, toggleVersus } from "../state/baseline";
import { type Run, runs } from "../state/runs";
import { measure, theme, update, view } from "../state/store";

export function VersusToggle() {
  if (view.value !== "network" && view.value !== "layer") return null;
  const button = (on: boolean, text: string) => (
    <Button
      class={differs.value === on ? "under" : ""}
      pressed={differs.value === on}
      disabled={on && !canDiffer.value}
      title={on ? `Differences to ${baselineRun.value?.name ?? "the baseline"} (D)` : undefined}
      onClick={() => differs.value !== on && toggleVersus()}
    >
      {text}
    </Button>
  );
  return (
    <div class="joined" role="group" aria-label="Values or differences">
      {button(false, "Values")}
      {button(true, "vs baseline")}
    </div>
  );
}

/** Tags the baseline, and makes another run the baseline. */
export function BaselineTag({ run }: { run: Run }) {
  if (runs.value.length < 2 || run.records === 0) return null;
  const own = isBaseline(run);
  return (
    <button
      type="button"
      class="tag"
      aria-pressed={own}
      aria-label={`Baseline: ${run.name}`}
      title={own ? "The others are compared with this run" : "Compare the others with this run"}
      onClick={() => update({ baseline: run.name })}
    >
      baseline
    </button>
  );
}

/** What the colours of differences mean, in the side bar. */
export function VersusScale() {
  const base = baselineRun.value;
  if (!differs.value || !base) return null;
  const layered = view.value === "layer";
  const which = layered ? "delta" : measure.value;
  const stops = [0, 0.25, 0.5, 0.75, 1].map((at) => blend(theme.value.diverging, at)).join(", ");
  return (
    <section class="side-block" aria-label="Scale of differences">
      <h2>
        {layered ? "Δ" : MEASURE_TITLES[which]}{" "}
        <span class="sub">
          against <bdi>{base.name}</bdi>
        </span>
      </h2>
      <div class="gradient" style={{ background: `linear-gradient(to right, ${stops})` }} />
      <div class="gradient-axis" aria-hidden="true">
        {differenceTicks(which).map(([place, text]) => (
          <span
            key={text}
            class={place === -1 ? "start" : place === 1 ? "end" : ""}
            style={{ left: `${50 + 50 * place}%` }}
          >
            {text}
          </span>
        ))}
      </div>
      <p class="sub scale-words">
        {which === "delta" ? "Moves less, alike, or more" : "Difference in percentage points"}
        {layered ? ". A colour of a state: the channel is in it, and not so in the baseline." : "."}
      </p>
    </section>
  );
}
