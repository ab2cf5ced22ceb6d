/** What a view is to the frame around it. `views/index.ts` has one of each name: the compiler misses none. */

import type { ComponentType } from "preact";
import { joinTables } from "../data/csv";
import { fetchCsv } from "../server/fetch";
import { type Run, threshold } from "../state/runs";
import { variableId } from "../state/store";

export interface CsvFile {
  title: string;
  /** Of the file, without its ending: its parts, of which long ones are cut. */
  name: readonly string[];
  /** The text, or what the route answers. */
  source: () => string | Promise<string | Blob>;
}

export interface View {
  component: ComponentType;
  css: string;
  /** The steps of the records that it shows: ← and → walk them. */
  steps(): Float64Array;
  /** The layer that is chosen in it, which other views take over. */
  layer(): string | null;
  keys: {
    /** J, K, and where it has no channels ↑ and ↓. */
    layer(by: number): void;
    /** [ and ] */
    run(by: number): void;
    /** Enter: a level down. */
    down(): void;
    /** Esc: a level up; false where there is none, which leads to the Network view. */
    up(): boolean;
    channel?(by: number): void;
    pin?(): void;
    /** { and } */
    other?(by: number): void;
  };
  /** What the keys led to, for the live region. */
  speak(): string;
  /** Names what a saved picture shows. */
  caption(): string;
  /** The states whose colours it shows, which the legend of a saved picture explains. */
  states: readonly number[];
  /** What the download menu offers. */
  files(): readonly CsvFile[];
}

export interface RegisteredView {
  title: string;
  /** Loads what it needs beyond the first picture. */
  load: () => Promise<View>;
}

/** The tables of some runs: that of one as the server writes it, those of several as one. */
function tableOf(
  runs: readonly Run[],
  what: string,
  name: readonly string[],
  ask: (run: string) => Promise<Blob>,
): CsvFile[] {
  const [first] = runs;
  if (runs.length === 0) return [];
  if (runs.length === 1)
    return [{ title: `CSV of ${first.name}, ${what}`, name: [first.name, ...name], source: () => ask(first.name) }];
  const source = async () => {
    const tables = runs.map(async ({ name: run }) => ({ run, table: await (await ask(run)).text() }));
    return joinTables(await Promise.all(tables));
  };
  return [{ title: `CSV of ${runs.length} runs, ${what}`, name: [`${runs.length}_runs`, ...name], source }];
}

/** What the server writes of runs: all layers, or one of them. */
export const runFiles = (runs: readonly Run[], layer: string | null): CsvFile[] =>
  tableOf(runs, layer === null ? "all layers" : "this layer", layer === null ? [] : [layer], (run) =>
    fetchCsv({ run, layer, variable: layer && variableId.peek(), th: threshold.peek() }),
  );

/** How far the outputs of runs moved. */
export const functionFiles = (runs: readonly Run[]): CsvFile[] =>
  tableOf(runs, "changes of outputs", [], (run) => fetchCsv({ run, function: 1 }));
