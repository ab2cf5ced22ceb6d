// The page in frames as notebooks have them.
import { axe, openTab } from "../../../frontend/scripts/browser.mjs";
import { click, goTo, hashOf } from "../visit.mjs";

/** Each view in a small frame. */
export async function small({ base, newPage }, { layer, width, height }) {
  const found = {};
  const page = await newPage({ width, height });
  const frame = await openTab(page, base);
  for (const view of ["findings", "network", "layer", "compare", "function"]) {
    await goTo(page, frame, hashOf({ v: view, l: layer }));
    const seen = await fits(frame);
    if (width <= 1000) {
      await click(frame, ".side-toggle");
      seen.opened = await shownRuns(frame);
      await click(frame, ".side-toggle");
    }
    found[view] = seen;
  }
  return found;
}

const shownRuns = (frame) => frame.$$eval(".runs li", (all) => all.filter((one) => one.offsetParent !== null).length);

/** How a view lies in its frame. */
async function fits(frame) {
  return {
    axe: await axe(frame),
    // Controls of the frame that can't be reached because they lie outside.
    outside: await frame.$$eval(".toolbar button, .toolbar input", (all) =>
      all
        .map((one) => ({ name: one.textContent || one.ariaLabel, box: one.getBoundingClientRect() }))
        .filter(({ box }) => box.width > 0 && (box.right > innerWidth + 1 || box.left < 0))
        .map(({ name }) => name),
    ),
    wide: await frame.evaluate(() => document.documentElement.scrollWidth - innerWidth),
    columns: (await frame.$$(".strips-label")).length,
    plots: await frame.$$eval(".net canvas, .heat-plot canvas", (all) =>
      all
        .map((one) => one.getBoundingClientRect())
        .filter((box) => box.height > 40)
        .map((box) => box.width),
    ),
    runs: await shownRuns(frame),
  };
}
