/**
 * Spreads pictures that are drawn again over the frames after the one that asks for them, which has the rest of the page
 * to render; a frame that has had enough leaves the rest to the next one.
 */

import { afterFrames } from "../state/idle";

/** Milliseconds of drawing after which a frame has had enough. */
const ENOUGH = 3;

const waiting = new Map<unknown, () => void>();
let going = false;

function wait(frames: number): void {
  going = true;
  afterFrames(frames, () => {
    going = false;
    const start = performance.now();
    for (const [key, draw] of [...waiting]) {
      if (performance.now() - start >= ENOUGH) break;
      waiting.delete(key);
      draw();
    }
    if (waiting.size > 0) wait(1);
  });
}

/**
 * Draws at once or some frames later.
 *
 * @param key names the picture: of what waits only the last is drawn.
 * @param patient whether there is a picture in its place that can stay for some frames.
 */
export function inTurn(key: unknown, patient: boolean, draw: () => void): void {
  waiting.delete(key);
  if (!patient) return draw();
  waiting.set(key, draw);
  // The callbacks of this frame are still to come.
  if (!going) wait(2);
}

/** Forgets a picture that is gone. */
export const noTurn = (key: unknown): void => void waiting.delete(key);
