// Names as the page has them.
import { idle } from "../../../frontend/scripts/browser.mjs";
import { goTo, hash, hashOf, NETWORK, openFrame, text } from "../visit.mjs";

/** Names as the page has them. */
export async function names({ base, newPage }) {
  const page = await newPage();
  const frame = await openFrame(page, base, { hash: NETWORK });
  const found = {
    runs: await text(frame, ".runs .path"),
    heads: await text(frame, ".run-head-name .path"),
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

/** What addresses say that name a layer or runs which aren't there. */
export async function lost({ base, newPage }, { addresses }) {
  const page = await newPage();
  const frame = await openFrame(page, base);
  const found = [];
  for (const fields of addresses) {
    await goTo(page, frame, hashOf(fields));
    found.push(await text(frame, "main .message"));
  }
  return found;
}
