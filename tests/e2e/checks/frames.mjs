// The page in frames as notebooks have them.
import { axe, idle, openTab } from "../../../frontend/scripts/browser.mjs";
import { hashOf } from "../visit.mjs";

/** Each view in a small frame. */
export async function small({ base, newPage }, { layer, sizes }) {
  const found = {};
  for (const [width, height] of sizes) {
    for (const view of ["network", "layer", "compare", "function"]) {
      const page = await newPage({ width, height });
      const frame = await openTab(page, base, { hash: hashOf({ v: view, l: layer }) });
      found[`${view} ${width}×${height}`] = {
        axe: await axe(frame),
        // Controls of the frame that can't be reached because they lie outside.
        outside: await frame.$$eval(".toolbar button, .toolbar input", (all) =>
          all
            .map((one) => ({ name: one.textContent || one.ariaLabel, box: one.getBoundingClientRect() }))
            .filter(({ box }) => box.width > 0 && (box.right > innerWidth + 1 || box.left < 0))
            .map(({ name }) => name),
        ),
        wide: await frame.evaluate(() => document.documentElement.scrollWidth - innerWidth),
        plots: await frame.$$eval(".net canvas, .heat-plot canvas", (all) =>
          all
            .map((one) => one.getBoundingClientRect())
            .filter((box) => box.height > 40)
            .map((box) => box.width),
        ),
        runs: (await frame.$$eval(".runs li", (all) => all.filter((one) => one.offsetParent !== null))).length,
      };
      if (width <= 1000) {
        await frame.click(".side-toggle");
        await idle(frame);
        found[`${view} ${width}×${height}`].opened = (
          await frame.$$eval(".runs li", (all) => all.filter((one) => one.offsetParent !== null))
        ).length;
      }
      await page.close();
    }
  }
  return found;
}
