/** Work that can wait, spread over frames: none gets more than it can do, and what answers the pointer comes first. */

import { afterFrames } from "./idle";

/** Milliseconds of drawing after which a frame has had enough. */
const ENOUGH = 3;
/** Milliseconds after which work is done beside the answer to an input: of most work, and of what is waited for. */
export const [PATIENCE, SOON] = [200, 50];
const INPUTS = ["pointermove", "pointerdown", "pointerup", "keydown", "wheel"];

interface Task {
  /** Gives true where there is more of it. */
  run: () => unknown;
  /** Renders afterwards, so that a frame has nothing else to do. */
  alone: boolean;
  /** What is due first is done first. */
  due: number;
}

const tasks = new Map<unknown, Task>();
let going = false;
/** Whether this frame has an input to answer. */
let touched = false;

export function listenToInputs(): void {
  const note = () => {
    touched = true;
  };
  for (const type of INPUTS) window.addEventListener(type, note, { capture: true, passive: true });
}

function work(start: number): void {
  let done = 0;
  for (const [key, task] of [...tasks].sort(([, a], [, b]) => a.due - b.due)) {
    if (done > 0 && (task.alone || performance.now() - start >= ENOUGH)) return;
    while (task.run() === true) if (performance.now() - start >= ENOUGH) return;
    if (tasks.get(key) === task) tasks.delete(key);
    if (task.alone) return;
    done++;
  }
}

function next(frames: number): void {
  going = true;
  afterFrames(frames, () => {
    going = false;
    const now = performance.now();
    if (!touched || [...tasks.values()].some(({ due }) => due <= now)) work(now);
    touched = false;
    if (tasks.size > 0) next(1);
  });
}

/**
 * Does something in a frame after this one.
 *
 * @param key names the work: of what waits under a name only the last is done, when it is the first one's turn.
 * @param run is called again where it gives true, in a later frame if this one has had enough.
 * @param alone whether it changes a signal, and the page renders afterwards.
 */
export function later(key: unknown, run: () => unknown, { alone = false, patience = PATIENCE } = {}): void {
  tasks.set(key, { run, alone, due: tasks.get(key)?.due ?? performance.now() + patience });
  // Inputs and renders come before the callbacks of their frame.
  if (!going) next(2);
}

/** Forgets what is no longer to be done. */
export const never = (key: unknown): void => void tasks.delete(key);
