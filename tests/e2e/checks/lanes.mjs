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

/** What stands below the lanes, and what the number of a scalar says of itself, in each lane. */
export async function scalarsTold({ base, newPage }) {
  const frame = await openFrame(await newPage(), base, {});
  const titles = await frame.$$eval("span.lane-scalar", (all) => all.map((one) => one.title));
  const menu = await frame.$$eval("select.lane-scalar", (all) => all.map((one) => one.value));
  return { legend: await frame.textContent(".lane-legend"), titles, menu };
}

/** Looks at views in windows of some widths: what `look` finds in the page, with the width and the view. */
async function eachView({ base, newPage }, { views, widths }, look) {
  const found = [];
  const page = await newPage();
  for (const width of widths) {
    await page.setViewportSize({ width, height: 900 });
    for (const view of views) {
      const frame = await openFrame(page, base, { hash: hashOf(view) });
      found.push({ width, view: view.v, seen: await frame.evaluate(look) });
    }
  }
  return found;
}

/** In the line of numbers, by view and width: its numbers, those that are cut off, and parts that cover the one before. */
export async function readoutCovered(visit, where) {
  const found = await eachView(visit, where, () => {
    const parts = [...document.querySelectorAll(".readout > b, .readout > .sub, .readout-run > *")];
    const numbers = parts.filter((part) => part.matches(".number"));
    const boxes = parts.map((part) => part.getBoundingClientRect());
    return {
      numbers: numbers.map((part) => part.textContent),
      cut: numbers.filter((part) => part.getBoundingClientRect().right > innerWidth).map((part) => part.textContent),
      covered: parts
        .filter((_, i) => i > 0 && boxes[i].left < boxes[i - 1].right - 0.5)
        .map((part) => part.textContent),
    };
  });
  return found.map(({ seen }) => seen);
}

/** What axe says of the lanes. */
export async function lanesLook({ base, newPage }, { dark }) {
  return axe(await openFrame(await newPage(), base, { dark }));
}

/** Of each list of names what they are cut to, in views and windows of some widths. */
export async function cutNames(visit, where) {
  const found = await eachView(visit, where, () =>
    [".runs", ".lanes-body", ".net-head", ".run-tabs", ".matrix", ".lap-rows", ".finding-list"].map((selector) => {
      const list = document.querySelector(selector);
      const names = [...(list?.querySelectorAll(".path") ?? [])].filter((one) => one.checkVisibility());
      return { selector, names: names.map((one) => [one.title, one.textContent]) };
    }),
  );
  return found.flatMap(({ width, view, seen }) => seen.map((list) => ({ width, view, ...list })));
}
