/** Waits for the first records: by default, TensorBoard doesn't reload by itself. */

import { effect } from "@preact/signals";
import { indexOf } from "./runs";

/** The page says so where there is no data. */
export const LOOK_AGAIN_MS = 10_000;

/** While no run has a record, calls back every ten seconds in which the page can be seen. */
export function awaitFirstData(reload: () => void): void {
  effect(() => {
    const { value: index } = indexOf();
    if (!index || index.runs.some((run) => run.records > 0)) return;
    const timer = setInterval(() => document.hidden || reload(), LOOK_AGAIN_MS);
    return () => clearInterval(timer);
  });
}
