/** CSV files that the server writes. */

import { routeUrl } from "../server/fetch";
import { type Run, threshold } from "./runs";
import { variableId } from "./store";

const url = (query: Record<string, string | number | null>): URL => new URL(routeUrl("export.csv", query));

/** Of each run all layers, or one of them. */
export const runFiles = (runs: readonly Run[], layer: string | null) =>
  runs.map(({ name }) => ({
    title: `CSV of ${name}, ${layer === null ? "all layers" : "this layer"}`,
    name: [name, ...(layer === null ? [] : [layer])],
    source: () => url({ run: name, layer, variable: layer && variableId.peek(), th: threshold.peek() }),
  }));

/** Of each run how far its outputs moved. */
export const functionFiles = (runs: readonly Run[]) =>
  runs.map(({ name }) => ({
    title: `CSV of ${name}, changes of outputs`,
    name: [name],
    source: () => url({ run: name, function: 1 }),
  }));
