/** Tables that the page itself writes. */

/**
 * Records as CSV under their keys, as_the_server_writes_them. Texts are quoted where they must be; missing numbers are
 * left empty.
 */
export function toCsv(records: readonly object[]): string {
  const cell = (value: unknown) => {
    const text = value === null || Number.isNaN(value) ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = records.map((record) => Object.values(record));
  const head = Object.keys(records[0] ?? {}).map((key) =>
    key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
  );
  return [head, ...lines].map((line) => `${line.map(cell).join(",")}\r\n`).join("");
}
