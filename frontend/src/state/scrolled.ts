/** How far the Network view is scrolled down, in blocks: what is drawn reaches further, and goes on in later frames. */

import { batch, effect, type Signal, signal } from "@preact/signals";
import { AROUND } from "../data/rowbox";
import { follower } from "./follow";
import { later, never, SOON } from "./later";

export const scrolled = signal(0);

/** The blocks that names, strips and dots are drawn around, each in frames of its own. */
export const [nameBlock, stripBlock, dotBlock] = [follower(0), signal(0), signal(0)];
const drawn = [nameBlock, stripBlock, dotBlock];

/** Scrolls down to a block; what doesn't reach there is drawn at once. */
export function scrollDown(block: number): void {
  if (block === scrolled.peek()) return;
  batch(() => {
    scrolled.value = block;
    for (const one of drawn) if (Math.abs(one.peek() - block) > AROUND) one.value = block;
  });
}

const ASIDE = { alone: true, patience: SOON } as const;
/** The view is left: the next one begins at its top. */
export function scrollBack(): void {
  batch(() => {
    for (const one of [scrolled, ...drawn]) one.value = 0;
  });
}

/**
 * Lets a part follow: what it draws at a block is prepared step by step, and shown in a frame after that.
 *
 * @returns ends it.
 */
export function prepared(one: Signal<number>, prepare: (block: number) => Generator<void>): () => void {
  const end = effect(() => {
    const block = scrolled.value;
    if (block === one.value) return never(one);
    const show = () => {
      one.value = block;
    };
    let steps: Generator<void> | null = null;
    const step = () => {
      steps ??= prepare(block);
      const more = !steps.next().done;
      if (!more) later(one, show, ASIDE);
      return more;
    };
    later(one, step, ASIDE);
  });
  return () => {
    end();
    never(one);
  };
}
