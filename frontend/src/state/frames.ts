/**
 * What is done in which frame: work is spread over frames, what follows the pointer changes in its own frames, answers
 * that arrive together are drawn together. `data-pastnet-idle` on the root element shows tests (and only them) when the
 * page is idle.
 */

import { batch, computed, effect, type ReadonlySignal, type Signal, signal, untracked } from "@preact/signals";
import { useLayoutEffect, useReducer, useRef } from "preact/hooks";

/** Requests and timers under way. */
const pending = signal(0);
export const loading = computed(() => pending.value > 0);
let waiting = 0;
let generation = 0;
let checking = false;

const busy = () => pending.peek() + waiting > 0;

/**
 * After two frames, one to render what the last change asks for and one to paint it, unless there is another change.
 */
function check(seen: number): void {
  requestAnimationFrame(() =>
    requestAnimationFrame(() => {
      if (!busy() && seen !== generation) return check(generation);
      checking = false;
      if (!busy()) document.documentElement.dataset.pastnetIdle = "true";
    }),
  );
}

function settle(): void {
  generation++;
  document.documentElement.dataset.pastnetIdle = "false";
  if (checking || busy()) return;
  checking = true;
  check(generation);
}

export function begin(): void {
  pending.value++;
  settle();
}

export function finish(): void {
  pending.value--;
  settle();
}

/** Does something in the frame after some others; it counts as under way, but not as loading. */
export function afterFrames(frames: number, action: () => void): void {
  waiting++;
  settle();
  const next = (left: number) =>
    requestAnimationFrame(() => {
      if (left > 1) return next(left - 1);
      waiting--;
      action();
      settle();
    });
  next(frames);
}

/** Marks each change of these signals: something renders, and may ask for more. */
export function watch(signals: readonly ReadonlySignal<unknown>[]): void {
  effect(() => {
    for (const watched of signals) watched.value;
    untracked(settle);
  });
}

/** Milliseconds of drawing after which a frame has had enough. */
const ENOUGH = 3;
/**
 * Milliseconds after which work is done in the same frame as the answer to an input: for most work, and for what is
 * awaited.
 */
export const [PATIENCE, SOON] = [200, 50];
const INPUTS = ["pointermove", "pointerdown", "pointerup", "keydown", "wheel"];

interface Task {
  /** Returns true if there is more of it. */
  run: () => unknown;
  /** Renders afterwards: its frame does nothing else. */
  renders: boolean;
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
    if (done > 0 && (task.renders || performance.now() - start >= ENOUGH)) return;
    while (task.run() === true) if (performance.now() - start >= ENOUGH) return;
    if (tasks.get(key) === task) tasks.delete(key);
    if (task.renders) return;
    done++;
  }
}

function workAfter(frames: number): void {
  going = true;
  afterFrames(frames, () => {
    going = false;
    const now = performance.now();
    // What answers the pointer comes first.
    if (!touched || [...tasks.values()].some(({ due }) => due <= now)) work(now);
    touched = false;
    if (tasks.size > 0) workAfter(1);
  });
}

/**
 * Does something in a frame after this one.
 *
 * @param key names the work: only the last work under a name is done, at the turn of the first.
 * @param run is called again if it returns true, in a later frame if this one is full.
 * @param renders whether it changes a signal: the page renders afterwards.
 */
export function later(key: unknown, run: () => unknown, { renders = false, patience = PATIENCE } = {}): void {
  tasks.set(key, { run, renders, due: tasks.get(key)?.due ?? performance.now() + patience });
  // Inputs and renders come before the callbacks of their frame.
  if (!going) workAfter(2);
}

/** Forgets what is no longer to be done. */
export const never = (key: unknown): void => void tasks.delete(key);

/** Followers that something on the page shows. */
const shown = new WeakSet<object>();

/** A signal that may follow another. */
export function follower<T>(value: T): Signal<T> {
  const following: Signal<T> = signal(value, {
    watched: () => void shown.add(following),
    unwatched: () => void shown.delete(following),
  });
  return following;
}

const ALWAYS = signal(true);

/**
 * Follows a signal, in its own frame after the one that shows the change; at once if nothing shows it.
 *
 * @param ready whether there is all that the value is shown with; that is awaited, but not for long.
 */
export function follow<T>(
  following: Signal<T>,
  source: ReadonlySignal<T>,
  { patience = PATIENCE, ready = ALWAYS }: { patience?: number; ready?: ReadonlySignal<boolean> } = {},
): void {
  const catchUp = () => {
    following.value = source.peek();
  };
  catchUp();
  effect(() => {
    if (source.value === following.peek()) return;
    if (!shown.has(following)) return catchUp();
    const begin = () => later(catchUp, catchUp, { renders: true, patience });
    if (ready.value) return begin();
    const timer = setTimeout(begin, PATIENCE);
    return () => clearTimeout(timer);
  });
}

/**
 * A value that a component shows in its own frame, after what shows the change at once.
 *
 * @param of what the value belongs to: if that changes, the value changes at once.
 * @param ready whether there is all that it is shown with; that is awaited, but not for long.
 */
export function useFollowed<T>(value: T, of: string, ready = true): T {
  const last = useRef({ of, value });
  const [, render] = useReducer((count: number) => count + 1, 0);
  if (last.current.of !== of) last.current = { of, value };
  useLayoutEffect(() => {
    if (last.current.value === value) return;
    const catchUp = () => {
      last.current = { of, value };
      render(undefined);
    };
    const begin = () => later(last, catchUp, { renders: true });
    const timer = ready ? begin() : setTimeout(begin, PATIENCE);
    return () => {
      clearTimeout(timer ?? undefined);
      never(last);
    };
  }, [value, of, ready]);
  return last.current.value;
}

/**
 * Lets a part of the page follow a signal: its picture of a value is prepared step by step, and shown in a frame after
 * that.
 *
 * @returns ends it.
 */
export function prepared<T>(
  following: Signal<T>,
  source: ReadonlySignal<T>,
  prepare: (value: T) => Generator<void>,
): () => void {
  const options = { renders: true, patience: SOON };
  const end = effect(() => {
    const { value } = source;
    if (value === following.value) return never(following);
    const show = () => {
      following.value = value;
    };
    let steps: Generator<void> | null = null;
    const step = () => {
      steps ??= prepare(value);
      const more = !steps.next().done;
      if (!more) later(following, show, options);
      return more;
    };
    later(following, step, options);
  });
  return () => {
    end();
    never(following);
  };
}

/** For so long an answer waits for others of its kind: one picture of all is sooner there than one of each. */
const TOGETHER_MS = 100;
/** Of each kind, those that are looked at and still under way. */
const awaited = new Map<string, number>();
const arrived = new Map<() => void, string>();

/** Says that an answer of a kind is on its way; call what it gives when it is no longer, or no longer awaited. */
export function expectAnswer(kind: string): () => void {
  awaited.set(kind, (awaited.get(kind) ?? 0) + 1);
  let coming = 1;
  return () => {
    awaited.set(kind, awaited.get(kind)! - coming);
    coming = 0;
  };
}

/** Calls back in a frame, together with the others. */
export function deliver(kind: string, change: () => void): void {
  arrived.set(change, kind);
  if (arrived.size > 1) return;
  const since = performance.now();
  const draw = () => {
    const more = [...arrived.values()].some((other) => (awaited.get(other) ?? 0) > 0);
    if (more && performance.now() - since < TOGETHER_MS) return void requestAnimationFrame(draw);
    const changes = [...arrived.keys()];
    arrived.clear();
    batch(() => {
      for (const show of changes) show();
    });
  };
  requestAnimationFrame(draw);
}
