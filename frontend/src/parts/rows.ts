/** Rows of equal height in a panel that scrolls: few fill it, of many those in sight are drawn and some around them. */

import { useLayoutEffect, useState } from "preact/hooks";
import { useSize } from "./canvas";

/** Rows are drawn in blocks, so that scrolling rarely redraws. */
const BLOCK = 12;

interface Options {
  lowest: number;
  highest: number;
  /** What stands below the rows and covers the last ones. */
  below?: number;
}

/** The place of the rows; the chosen one (-1 for none) stays in sight. */
export function useRows(count: number, chosen: number, { lowest, highest, below = 0 }: Options) {
  const { ref, size } = useSize<HTMLDivElement>();
  const [scroll, setScroll] = useState(0);
  const pitch = Math.min(highest, Math.max(lowest, Math.floor((size.height - below) / Math.max(1, count))));
  const first = Math.max(0, (Math.floor(scroll / pitch / BLOCK) - 1) * BLOCK);
  const last = Math.min(count, first + Math.ceil(size.height / pitch / BLOCK) * BLOCK + 3 * BLOCK);
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element || chosen < 0) return;
    const low = (chosen + 1) * pitch + below - element.clientHeight;
    element.scrollTop = Math.min(chosen * pitch, Math.max(low, element.scrollTop));
  }, [chosen, pitch]);
  const scroller = {
    ref,
    tabIndex: 0,
    onScroll: (event: { currentTarget: HTMLElement }) => setScroll(event.currentTarget.scrollTop),
  };
  /** Rows [first, last) are drawn. */
  return { width: size.width, pitch, first, last, scroller };
}
