/** The account of records, notes and warnings. */

import { formatBytes, formatCount, formatShare } from "../data/format";
import { livenessOf } from "../data/live";
import { Icon, Marker } from "../parts/widgets";
import type { Account, Overhead } from "../server/types";
import { overviewOf } from "../state/answers";
import { indexOf, layers, listedRuns, type Run } from "../state/runs";

const PARTS: [keyof Account, string][] = [
  ["offered", "steps at which a record was due"],
  ["shown", "in these pictures"],
  ["superseded", "overwritten after resuming from an earlier step"],
  ["thinned", "thinned to limit size"],
  ["dropped", "dropped: disk too slow"],
  ["unreadable", "written but damaged, or of a newer version"],
];
const COSTS: [string, string, (cost: Overhead) => string][] = [
  [
    "recording overhead",
    "recording overhead as a share of training",
    (cost) => formatShare(cost.seconds, cost.training),
  ],
  ["size", "written to disk", (cost) => formatBytes(cost.bytes)],
];
const BAD = new Set<keyof Account>(["dropped", "unreadable"]);

/** What the server counted; a user's own writer leaves nothing to count but what is shown. */
const countOf = (run: Run, part: keyof Account): string =>
  run.source === "summary" && part !== "shown" ? "–" : formatCount(run.account[part]);

function AccountTable({ list }: { list: readonly Run[] }) {
  return (
    <table>
      <thead>
        <tr>
          <td />
          {list.map((run) => (
            <th key={run.name} scope="col" title={run.name}>
              <Marker color={run.color} shape={run.shape} size={10} />
              <span class="offscreen">{run.name}</span>
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {PARTS.map(([part, hint]) => (
          <tr key={part}>
            <th scope="row" class="text" title={hint}>
              {part}
            </th>
            {list.map((run) => (
              <td key={run.name} class={BAD.has(part) && run.account[part] > 0 ? "some" : ""}>
                {countOf(run, part)}
              </td>
            ))}
          </tr>
        ))}
        {COSTS.map(([name, hint, text]) => (
          <tr key={name}>
            <th scope="row" class="text" title={hint}>
              {name}
            </th>
            {list.map((run) => (
              <td key={run.name}>{run.overhead ? text(run.overhead) : "–"}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Everything that was said about the runs, as lines of text. */
function messages(): string[] {
  const lines = [...(indexOf().value?.warnings ?? [])];
  for (const run of listedRuns.value) {
    // The overview has read more than the index: masks and what was held.
    for (const note of overviewOf(run.name).value?.header.notes ?? run.notes)
      lines.push(`${run.name}: ${note.text}${note.count > 1 ? ` (${formatCount(note.count)} times)` : ""}`);
    for (const skipped of run.skipped) lines.push(`${run.name}: ${skipped.name} is not recorded: ${skipped.reason}`);
    if (livenessOf(run, Date.now() / 1000) === "silent") {
      lines.push(
        `${run.name}: no end was recorded. Killed or no longer recording. Resume into the same directory to continue this run.`,
      );
    }
    if (run.source === "summary") {
      lines.push(`${run.name}: written by a summary writer of your own, so lost records can't be counted.`);
    }
  }
  const guessed = layers.value.filter((layer) => !layer.verified);
  if (guessed.length > 0) {
    const names = guessed
      .slice(0, 3)
      .map((layer) => layer.id)
      .join(", ");
    lines.push(
      `The channel axis of ${names}${guessed.length > 3 ? ` and ${guessed.length - 3} more` : ""} is a guess: set channel_axis= where it is wrong.`,
    );
  }
  return lines;
}

export function Records() {
  const list = listedRuns.value;
  if (list.length === 0) return null;
  const sum = (part: keyof Account) => list.reduce((total, run) => total + run.account[part], 0);
  const lost = sum("dropped") + sum("unreadable");
  const lines = messages();
  return (
    <section class="side-block records" aria-label="Account of records">
      <details open={lost > 0}>
        <summary>
          <h2>
            Records{" "}
            <span class="sub">
              {formatCount(sum("shown"))} of {formatCount(sum("offered"))} shown
            </span>
          </h2>
        </summary>
        <div class="table-scroll" role="region" aria-label="Account of records by run" tabIndex={0}>
          <AccountTable list={list} />
        </div>
      </details>
      {lines.length > 0 ? (
        <details open={lines.length <= 3}>
          <summary>
            <h2>
              Notes <span class="sub">{formatCount(lines.length)}</span>
            </h2>
          </summary>
          <ul class="notes">
            {lines.map((line) => (
              <li key={line}>
                <Icon name="warning" size={12} /> <bdi>{line}</bdi>
              </li>
            ))}
          </ul>
        </details>
      ) : null}
    </section>
  );
}
