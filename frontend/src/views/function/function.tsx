/** The Function view: did the function change, and where? Past network against current one, on the same probe. */

import { CHANGE_TITLES } from "../../data/function";
import { Button, Failure, Skeleton } from "../../parts/widgets";
import { activeChange, activePlace, activeProbed, functionOf, offered, probedRuns } from "../../state/probed";
import { update } from "../../state/store";
import { FunctionCells } from "./cells";
import { FunctionLines } from "./lines";
import { FunctionProbe, NoProbe } from "./probe";
import { FunctionScatter } from "./scatter";

function Title() {
  return (
    <div class="fn-title">
      <h1>Did the function change, and where?</h1>
      <p class="sub">outputs y of the current network against y′ of the past one, on the same batch</p>
      <div class="joined" role="group" aria-label="Measure of change">
        {offered.value.map((value) => (
          <Button
            key={value}
            class={activeChange.value === value ? "under" : ""}
            pressed={activeChange.value === value}
            onClick={() => update({ change: value })}
          >
            {CHANGE_TITLES[value]}
          </Button>
        ))}
      </div>
    </div>
  );
}

export function FunctionView() {
  const entry = activeProbed.value;
  const own = activePlace.value;
  if (probedRuns.value.length === 0) return <NoProbe />;
  const answers = probedRuns.value.map((run) => functionOf(run.name));
  const errors = [...new Set(answers.map(({ error }) => error))].filter((error) => error !== null);
  return (
    <div class="fn-view">
      <Title />
      {errors.map((error) => (
        <Failure key={error} text={error} />
      ))}
      {entry && own ? (
        <div class="fn-columns">
          <div>
            <FunctionLines own={own} />
            <FunctionCells />
          </div>
          <div>
            <FunctionScatter entry={entry} />
            <FunctionProbe entry={entry} />
          </div>
        </div>
      ) : answers.some(({ value, error }) => !value && !error) ? (
        <Skeleton height={420} />
      ) : errors.length === 0 ? (
        <p class="message">The probe has no records yet. They appear here with the first flush of the recorder.</p>
      ) : null}
    </div>
  );
}
