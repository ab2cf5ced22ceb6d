/**
 * What is done in which frame: one scheduler, whose lanes have their turns in each frame. `data-pastnet-idle` on the
 * root element shows tests (and only them) when the page is idle.
 */

import { computed, effect, type ReadonlySignal, signal, untracked } from "@preact/signals";

/**
 * In the order of their turns:
 * - "input": answers the user, and has its frame whatever else there is to do;
 * - "render": changes a signal, after which the page renders; of "render" and "draw" its frame does nothing else;
 * - "draw": as much as a frame has time for.
 */
export type Lane = "input" | "render" | "draw";

interface Task {
  lane: Lane;
  /** Returns true if there is more of it. */
  run: () => unknown;
  /** The first frame that it may have. */
  from: number;
  /** Of "render" and "draw", what is due first is done first. */
  due: number;
}

/** By what names the work: only the last under a name is done, at the turn of the first. */
const tasks = new Map<unknown, Task>();
/** The number of the latest frame. */
let frame = 0;
let going = false;
/** Whether this frame has an input to answer. */
let touched = false;
/** Frames begun since the last change: one to render what it asks for, one to paint it. */
let rested = 0;
/** The first frame in which there is anything to render or draw. */
let opens = 0;

/** Requests and timers under way. */
const pending = signal(0);
export const loading = computed(() => pending.value > 0);

/** Milliseconds of drawing after which a frame has had enough. */
const ENOUGH = 3;
/**
 * Milliseconds after which work is done in the same frame as the answer to an input: for most work, and for what is
 * awaited.
 */
export const [PATIENCE, SOON] = [200, 50];
const INPUTS = ["pointermove", "pointerdown", "pointerup", "keydown", "wheel"];

export function listenToInputs(): void {
  const note = () => {
    touched = true;
  };
  for (const type of INPUTS) window.addEventListener(type, note, { capture: true, passive: true });
}

function settle(): void {
  rested = 0;
  document.documentElement.dataset.pastnetIdle = "false";
  if (going) return;
  going = true;
  requestAnimationFrame(turn);
}

export function begin(): void {
  pending.value++;
  settle();
}

export function finish(): void {
  pending.value--;
  settle();
}

/** Marks each change of these signals: something renders, and may ask for more. */
export function watch(signals: readonly ReadonlySignal<unknown>[]): void {
  effect(() => {
    for (const watched of signals) watched.value;
    untracked(settle);
  });
}

/** Does some of the work of a task, and forgets it when there is no more. */
function more(key: unknown, task: Task): boolean {
  rested = 0;
  if (task.run() === true) return true;
  if (tasks.get(key) === task) tasks.delete(key);
  return false;
}

/** Renders or draws until the frame has had enough. */
function work(start: number): void {
  const full = () => performance.now() - start >= ENOUGH;
  const ready = [...tasks].filter(([, { lane }]) => lane !== "input").sort(([, a], [, b]) => a.due - b.due);
  for (const [done, [key, task]] of ready.entries()) {
    if (done > 0 && (task.lane === "render" || full())) return;
    while (more(key, task)) if (full()) return;
    if (task.lane === "render") return;
  }
}

function turn(): void {
  frame++;
  rested++;
  for (const [key, task] of [...tasks]) if (task.lane === "input" && task.from <= frame) more(key, task);
  const now = performance.now();
  // What answers the pointer comes first.
  if (frame >= opens && (!touched || [...tasks.values()].some(({ lane, due }) => lane !== "input" && due <= now)))
    work(now);
  touched = false;
  going = tasks.size > 0 || (pending.peek() === 0 && rested < 2);
  if (going) requestAnimationFrame(turn);
  else if (pending.peek() === 0) document.documentElement.dataset.pastnetIdle = "true";
}

/**
 * Does something in a frame to come.
 *
 * @param key names the work.
 * @param run is called again if it returns true: of "input" in the next frame, else when there is time for it.
 */
export function schedule(lane: Lane, key: unknown, run: () => unknown, { frames = 1, patience = PATIENCE } = {}): void {
  // Inputs and renders come before the callbacks of their frame.
  if (lane !== "input" && ![...tasks.values()].some((task) => task.lane !== "input")) opens = frame + 2;
  const first = tasks.get(key) ?? { from: frame + frames, due: performance.now() + patience };
  tasks.set(key, { lane, run, from: first.from, due: first.due });
  settle();
}

/** Does something in the frame after some others. */
export const afterFrames = (frames: number, action: () => void): void => schedule("input", action, action, { frames });

/** Forgets what is no longer to be done. */
export const never = (key: unknown): void => void tasks.delete(key);
