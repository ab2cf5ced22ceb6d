/** The polite live region: what the keys led to, read out once they have come to rest. */

import { useEffect, useRef } from "preact/hooks";
import { channel, focusRow, page, spoken, view } from "../state/store";
import { shownView } from "./parts";

const REST_MS = 400;

export function Spoken() {
  const { step, layer, run, other, place } = page.value;
  const key = JSON.stringify([view.value, step, layer, run, other, place, channel.value, focusRow.value]);
  const first = useRef(key);
  useEffect(() => {
    if (key === first.current) return;
    first.current = "";
    const said = spoken.peek();
    const timer = setTimeout(() => {
      // What a key said by itself goes before.
      if (spoken.peek() === said) spoken.value = shownView()?.speak() ?? "";
    }, REST_MS);
    return () => clearTimeout(timer);
  }, [key]);
  return (
    <div class="offscreen" role="status" aria-live="polite">
      {spoken.value}
    </div>
  );
}
