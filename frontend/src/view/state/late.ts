/** Steps that follow the pointer some frames later: no frame has the work of all panels to do. */

import { signal } from "@preact/signals";
import { cursor, readStep } from "./cursor";
import { follow } from "./follow";

/** What numbers are read at. */
export const numberStep = signal(0);
/** What dots are drawn at: a marker for each run and row. */
export const dotStep = signal(0);
/** The cursor's, in what screen readers are told. */
export const spokenStep = signal(0);

export function followPointer(): void {
  follow(numberStep, readStep, 2);
  follow(dotStep, readStep, 3);
  follow(spokenStep, cursor, 3);
}
