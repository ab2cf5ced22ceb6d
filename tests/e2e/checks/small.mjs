// Narrow windows and long names: what is cut off, and by what.
import { idle } from "../../../frontend/scripts/browser.mjs";
import { hashOf, openFrame } from "../visit.mjs";

/** In the page: how far an element is outside of the window, in pixels; 0 where it is inside. */
const outside = (frame, selector) =>
  frame.$eval(selector, (element) => {
    const { left, top, right, bottom } = element.getBoundingClientRect();
    return Math.max(0, -left, -top, right - innerWidth, bottom - innerHeight);
  });

/** The tooltip over places of the pictures of a view, in the corners of a small window. */
export async function tooltips({ base, newPage }, { hash, width, height }) {
  const page = await newPage({ width, height });
  const frame = await openFrame(page, base, { hash: hashOf(hash) });
  const { x, y, width: wide, height: tall } = await (await frame.$(".run-column")).boundingBox();
  const found = [];
  for (const [across, down] of [
    [x + 5, y + 5],
    [Math.min(width, x + wide) - 5, Math.min(height, y + tall) - 25],
  ]) {
    await page.mouse.move(across, down);
    await idle(frame);
    found.push(await outside(frame, ".tooltip"));
  }
  return found;
}
