/** Tells that something is awaited. */

import { useLayoutEffect, useState } from "preact/hooks";
import { loading } from "../state/frames";

/** Milliseconds; what comes sooner needs no sign of waiting. */
const SOON = 300;

export function Progress() {
  const busy = loading.value;
  const [late, setLate] = useState(false);
  useLayoutEffect(() => {
    if (!busy) return;
    const timer = setTimeout(() => setLate(true), SOON);
    return () => {
      clearTimeout(timer);
      setLate(false);
    };
  }, [busy]);
  return late ? <div class="progress" role="presentation" /> : null;
}
