/** Signals, values and pictures that follow others some frames later, each in its own frame. */

import { effect, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { useLayoutEffect, useReducer, useRef } from "preact/hooks";
import { never, PATIENCE, SOON, schedule } from "./frames";

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

/**
 * Catches up in its own frame, when there is all that the value is shown with; that is awaited, but not for long.
 *
 * @returns ends the waiting.
 */
function catchUpWhen(ready: boolean, key: unknown, catchUp: () => void, patience = PATIENCE): () => void {
  const begin = () => schedule("render", key, catchUp, { patience });
  const timer = ready ? begin() : setTimeout(begin, PATIENCE);
  return () => clearTimeout(timer ?? undefined);
}

const ALWAYS = signal(true);

/**
 * Follows a signal, in its own frame after the one that shows the change; at once if nothing shows it.
 *
 * @param ready whether there is all that the value is shown with.
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
    return catchUpWhen(ready.value, catchUp, catchUp, patience);
  });
}

/**
 * A value that a component shows in its own frame, after what shows the change at once.
 *
 * @param of what the value belongs to: if that changes, the value changes at once.
 * @param ready whether there is all that it is shown with.
 */
export function useFollowed<T>(value: T, of: string, ready = true): T {
  const last = useRef({ of, value });
  const [, render] = useReducer((count: number) => count + 1, 0);
  if (last.current.of !== of) last.current = { of, value };
  useLayoutEffect(() => {
    if (last.current.value === value) return;
    const end = catchUpWhen(ready, last, () => {
      last.current = { of, value };
      render(undefined);
    });
    return () => {
      end();
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
  const plan = (run: () => unknown) => schedule("render", following, run, { patience: SOON });
  const end = effect(() => {
    const { value } = source;
    if (value === following.value) return never(following);
    let steps: Generator<void> | null = null;
    plan(() => {
      steps ??= prepare(value);
      if (!steps.next().done) return true;
      plan(() => {
        following.value = value;
      });
    });
  });
  return () => {
    end();
    never(following);
  };
}
