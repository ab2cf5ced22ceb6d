/** Tables that the page itself writes, or joins. */

/** A text in a cell: quoted where it must be. */
const quoted = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** The lines of a table; a quoted text may hold ends of lines. */
const linesOf = (table: string): string[] => table.match(/(?:"(?:[^"]|"")*"|[^"\r\n])+(?=\r?\n|$)/g) ?? [];

/** Tables of several runs as one, with the run in front of each line. */
export function joinTables(tables: readonly { run: string; table: string }[]): string {
  const [head = ""] = linesOf(tables[0]?.table ?? "");
  const lines = tables.flatMap(({ run, table }) =>
    linesOf(table)
      .slice(1)
      .map((line) => `${quoted(run)},${line}`),
  );
  return [`run,${head}`, ...lines].map((line) => `${line}\r\n`).join("");
}

/**
 * Records as CSV under their keys, as_the_server_writes_them. Texts are quoted where they must be; missing numbers are
 * left empty.
 */
export function toCsv(records: readonly object[]): string {
  const cell = (value: unknown) => {
    return quoted(value === null || Number.isNaN(value) ? "" : String(value));
  };
  const lines = records.map((record) => Object.values(record));
  const head = Object.keys(records[0] ?? {}).map((key) =>
    key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
  );
  return [head, ...lines].map((line) => `${line.map(cell).join(",")}\r\n`).join("");
}
