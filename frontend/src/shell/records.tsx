/** The account of records, notes and warnings. */

import { formatBytes, formatCount, formatShare } from "../data/format";
import { livenessOf } from "../data/live";
import { Icon, Marker } from "../parts/widgets";
import type { Account, Overhead } from "../server/types";
import { overviewOf } from "../state/answers";
import { indexOf, layers, listedRuns, type Run } from "../state/runs";

const PARTS: [keyof Account, string][] = [
  ["offered", "steps at which a record was due"],
  ["shown", "in these plots"],
  ["superseded", "overwritten after resuming from an earlier step"],
  ["thinned", "thinned to limit size"],
  ["dropped", "not written: the notes say why"],
  ["unreadable", "written but damaged, or of a newer version"],
];
const LOST = ["dropped", "unreadable"] as const;

/** What the server counted; a user's own writer leaves nothing to count but what is shown. */
const countOf = (run: Run, part: keyof Account): string =>
  run.source === "summary" && part !== "shown" ? "–" : formatCount(run.account[part]);

const costOf =
  (text: (cost: Overhead) => string) =>
  ({ overhead }: Run): string =>
    overhead ? text(overhead) : "–";

/** The rows of the table: what they count, in more words, and of a run. */
const ROWS: [string, string, (run: Run) => string][] = [
  ...PARTS.map(([part, hint]): (typeof ROWS)[number] => [
    part === "offered" ? "due" : part,
    hint,
    (run) => countOf(run, part),
  ]),
  [
    "recording overhead",
    "recording overhead as a share of training",
    costOf(({ seconds, training }) => formatShare(seconds, training)),
  ],
  ["size", "written to disk", costOf(({ bytes }) => formatBytes(bytes))],
  [
    "memory",
    "past values, and what frozen weights are compared with",
    costOf(({ memory }) => (memory > 0 ? formatBytes(memory) : "–")),
  ],
];

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
        {ROWS.map(([name, hint, text]) => (
          <tr key={name}>
            <th scope="row" class="text" title={hint}>
              {name}
            </th>
            {list.map((run) => (
              <td key={run.name} class={LOST.some((part) => part === name && run.account[part] > 0) ? "some" : ""}>
                {text(run)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const SILENT =
  "no end was recorded: killed, or no longer recording. Resume into the same directory to continue this run.";
const UNCOUNTED = "written by your own summary writer, so lost records can't be counted.";

/** All notes and warnings about the runs, as lines of text. */
function messages(): string[] {
  const lines = [...(indexOf().value?.warnings ?? [])];
  for (const run of listedRuns.value) {
    // The overview has read more than the index: masks and violations.
    const { value: overview, error } = overviewOf(run.name);
    const notes = overview?.header.notes ?? run.notes;
    const said = [
      ...(error && !overview ? ["notes of masks and violations aren't loaded."] : []),
      ...notes.map(({ text, count }) => `${text}${count > 1 ? ` (${formatCount(count)} times)` : ""}`),
      ...run.skipped.map(({ name, reason }) => `${name} is not recorded: ${reason}`),
    ];
    if (livenessOf(run, indexOf().at / 1000) === "silent") said.push(SILENT);
    if (run.source === "summary") said.push(UNCOUNTED);
    lines.push(...said.map((text) => `${run.name}: ${text}`));
  }
  const guessed = layers.value.filter((layer) => !layer.verified);
  if (guessed.length > 0) {
    const names = guessed.slice(0, 3).map((layer) => layer.id);
    const more = guessed.length > 3 ? ` and ${guessed.length - 3} more` : "";
    lines.push(`The channel axis of ${names.join(", ")}${more} is a guess. If it is wrong, set channel_axis=.`);
  }
  return lines;
}

const Summary = ({ title, sub }: { title: string; sub: string }) => (
  <summary>
    <h2>
      {title} <span class="sub">{sub}</span>
    </h2>
  </summary>
);

export function Records() {
  // Those in the pictures are in sight.
  const list = [...listedRuns.value].sort((a, b) => +b.shown - +a.shown);
  if (list.length === 0) return null;
  const sum = (part: keyof Account) => list.reduce((total, run) => total + run.account[part], 0);
  const lost = LOST.some((part) => sum(part) > 0);
  const lines = messages();
  return (
    <section class="side-block records" aria-label="Account of records">
      <details open={lost}>
        <Summary title="Records" sub={`${formatCount(sum("shown"))} of ${formatCount(sum("offered"))} shown`} />
        <div class="table-scroll" role="region" aria-label="Account of records by run" tabIndex={0}>
          <AccountTable list={list} />
        </div>
      </details>
      {lines.length > 0 ? (
        <details open={lines.length <= 3}>
          <Summary title="Notes" sub={formatCount(lines.length)} />
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
