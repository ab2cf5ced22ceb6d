// What a user meets before there is a tab, in place of its page, and in each view while there is little to show.
import { axe } from "../../../frontend/scripts/browser.mjs";
import { goTo, hashOf, openFrame, text } from "../visit.mjs";

/** TensorBoard's own bar and the text of our frame; null where there is none. */
export async function arrive({ base, newPage }, { plugin }) {
  const page = await newPage();
  await page.goto(`${base}/#pastnet`);
  await page.waitForFunction(() => document.querySelector("app-header")?.textContent.match(/inactive/i));
  const listing = await page.evaluate(async () => Object.keys(await (await fetch("data/plugins_listing")).json()));
  if (!plugin) return { listing, bar: await page.textContent("app-header"), frames: (await page.$$("iframe")).length };
  const frame = await (await page.waitForSelector('iframe[src*="name=pastnet"]')).contentFrame();
  await frame.waitForFunction(() => document.body?.children.length > 0 && document.body.innerText.trim() !== "");
  return { listing, text: await frame.evaluate(() => document.body.innerText) };
}

/** What each view says, and what axe finds in those that are `looked` at. */
export async function sayings({ base, newPage }, { views, looked = [] }) {
  const page = await newPage();
  const frame = await openFrame(page, base);
  const found = {};
  for (const view of views) {
    await goTo(page, frame, hashOf({ v: view }));
    found[view] = {
      main: await frame.$eval("main", (main) => main.innerText),
      side: await text(frame, ".runs .sub"),
      notes: await text(frame, ".notes li"),
      alerts: await text(frame, "[role=alert]"),
      axe: looked.includes(view) ? await axe(frame) : null,
    };
  }
  return found;
}
