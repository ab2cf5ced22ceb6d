// What the lanes say at a step, and what names are cut to.
import { axe } from "../../../frontend/scripts/browser.mjs";
import { goTo, hashOf, openFrame } from "../visit.mjs";

/** Of each run its learning rate and its scalar, and what screen readers read, in windows of some widths. */
export async function lanesAt({ base, newPage }, { widths, steps }) {
  const found = {};
  const page = await newPage();
  for (const width of widths) {
    await page.setViewportSize({ width, height: 900 });
    const frame = await openFrame(page, base, {});
    for (const s of steps) {
      await goTo(page, frame, hashOf({ s }));
      const lanes = await frame.$$eval(".lane", (all) =>
        all.map((lane) => ({
          run: lane.querySelector(".run-label").title,
          rate: lane.querySelector(".lane-rate").textContent,
          scalar: lane.querySelector(".lane-scalar")?.textContent ?? null,
          words: lane.ariaLabel,
        })),
      );
      await goTo(page, frame, hashOf({ v: "network", s }));
      const readout = await frame.textContent(".readout");
      found[`${width} ${s}`] = { lanes, readout };
    }
  }
  return found;
}

/** What axe says of the lanes. */
export async function lanesLook({ base, newPage }, { dark }) {
  return axe(await openFrame(await newPage(), base, { dark }));
}

/** Of each list of names what they are cut to, in views and windows of some widths. */
export async function cutNames({ base, newPage }, { views, widths }) {
  const found = [];
  const page = await newPage();
  for (const width of widths) {
    await page.setViewportSize({ width, height: 900 });
    for (const view of views) {
      const frame = await openFrame(page, base, { hash: hashOf(view) });
      const lists = await frame.evaluate(() =>
        [".runs", ".lanes-body", ".net-head", ".run-tabs", ".matrix", ".lap-rows", ".finding-list"].map((selector) => {
          const list = document.querySelector(selector);
          const names = [...(list?.querySelectorAll(".path") ?? [])].filter((one) => one.checkVisibility());
          return [selector, names.map((one) => [one.title, one.textContent])];
        }),
      );
      for (const [selector, names] of lists) found.push({ width, view: view.v, selector, names });
    }
  }
  return found;
}
