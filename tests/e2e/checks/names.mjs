// Names as the page has them.
import { idle, openTab } from "../../../frontend/scripts/browser.mjs";
import { hash, text } from "../visit.mjs";

/** Names as the page has them. */
export async function names({ base, newPage }) {
  const page = await newPage();
  const frame = await openTab(page, base);
  const found = {
    runs: await text(frame, ".runs .path"),
    heads: await text(frame, ".run-head .path"),
    layers: await text(frame, ".net-name .plain bdi"),
    titles: await frame.$$eval(".layer-name", (all) => all.map((one) => one.title)),
    elements: await frame.$$eval("body *", (all) => [...new Set(all.map((one) => one.localName))]),
  };
  await frame.click(".layer-name");
  await idle(frame);
  return {
    ...found,
    opened: await text(frame, ".layer-title h1"),
    tabs: await text(frame, ".run-tabs .path"),
    address: await hash(page),
  };
}
