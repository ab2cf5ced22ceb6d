/**
 * What the page says where there is nothing. Only an answer of the server can say so: what isn't loaded reads "not
 * loaded", or "…" while it is on its way. A test lets each request fail in turn, and looks for these texts.
 */
export const ABSENT = {
  data: "No PastNet data yet",
  recorded: "Nothing is recorded yet",
  records: "no records yet",
  record: "no record yet",
  recordHere: "No record yet at this step",
  recordOf: "No record of this layer yet",
  sameStep: "no record at the same step",
  runs: "No runs selected",
  run: "No run matches",
  layer: "No layer matches",
  layerIn: "no such layer",
  layerOf: "No selected run has",
  findings: "Nothing to report",
  finding: "No finding matches",
  violations: "No violations",
  changes: "No state changes",
  probe: "No probe was recorded",
  probed: "No probe records yet",
  value: "no value",
} as const;

/** A value that there isn't. */
export const DASH = "–";
