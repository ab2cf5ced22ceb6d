/** Spreads pictures that are drawn again over frames: a frame that has had enough leaves the rest to the next one. */

import { afterFrames } from "../state/idle";

/** Milliseconds of drawing after which a frame has had enough. */
const ENOUGH = 3;

const waiting = new Map<unknown, () => void>();
let spent = 0;
let counting = false;

function timed(draw: () => void): void {
  const start = performance.now();
  draw();
  spent += performance.now() - start;
}

function nextFrame(): void {
  counting = false;
  spent = 0;
  for (const [key, draw] of [...waiting]) {
    if (spent >= ENOUGH) break;
    waiting.delete(key);
    timed(draw);
  }
  if (waiting.size > 0 || spent > 0) count();
}

function count(): void {
  if (counting) return;
  counting = true;
  // The callbacks of this frame, if any are left, are still part of it.
  afterFrames(2, nextFrame);
}

/**
 * Draws at once or some frames later.
 *
 * @param key names the picture: of what waits only the last is drawn.
 * @param patient whether there is a picture in its place that can stay for some frames.
 */
export function inTurn(key: unknown, patient: boolean, draw: () => void): void {
  waiting.delete(key);
  if (patient && spent >= ENOUGH) waiting.set(key, draw);
  else timed(draw);
  count();
}

/** Forgets a picture that is gone. */
export const noTurn = (key: unknown): void => void waiting.delete(key);
