/** What a view is to the frame around it. `views/index.ts` has one of each name: the compiler misses none. */

import type { ComponentType } from "preact";
import { fetchCsv } from "../server/fetch";
import { type Run, threshold } from "../state/runs";
import { variableId } from "../state/store";

export interface CsvFile {
  title: string;
  /** Of the file, without its ending: its parts, of which long ones are cut. */
  name: readonly string[];
  /** The text, or what the route answers. */
  source: () => string | Promise<Blob>;
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

/** Files that the server writes: of each run all layers, or one of them. */
export const runFiles = (runs: readonly Run[], layer: string | null): CsvFile[] =>
  runs.map(({ name }) => ({
    title: `CSV of ${name}, ${layer === null ? "all layers" : "this layer"}`,
    name: [name, ...(layer === null ? [] : [layer])],
    source: () => fetchCsv({ run: name, layer, variable: layer && variableId.peek(), th: threshold.peek() }),
  }));

/** Of each run how far its outputs moved. */
export const functionFiles = (runs: readonly Run[]): CsvFile[] =>
  runs.map(({ name }) => ({
    title: `CSV of ${name}, changes of outputs`,
    name: [name],
    source: () => fetchCsv({ run: name, function: 1 }),
  }));
