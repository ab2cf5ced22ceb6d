/** A value that a component shows some frames after it has changed. */

import { useLayoutEffect, useReducer, useRef } from "preact/hooks";
import { later, never, PATIENCE } from "../state/later";

/**
 * The value, followed in a frame of its own: what shows the change at once comes first.
 *
 * @param of what it is a value of: where that is another one, it is known at once.
 * @param ready whether there is all that it is shown with; that is awaited, but not for long.
 */
export function useFollowed<T>(value: T, of: string, ready = true): T {
  const known = useRef({ of, value });
  const [, render] = useReducer((count: number) => count + 1, 0);
  if (known.current.of !== of) known.current = { of, value };
  useLayoutEffect(() => {
    if (known.current.value === value) return;
    const follow = () => {
      known.current = { of, value };
      render(undefined);
    };
    const begin = () => later(known, follow, { alone: true });
    const timer = ready ? begin() : setTimeout(begin, PATIENCE);
    return () => {
      clearTimeout(timer ?? undefined);
      never(known);
    };
  }, [value, of, ready]);
  return known.current.value;
}
