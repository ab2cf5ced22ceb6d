// The numbers that the page shows, from its tables.
import { openTab } from "../../../frontend/scripts/browser.mjs";
import { click, goTo, hashOf, rows, text } from "../visit.mjs";

/** The network's table at some steps, and what stands above it. */
export async function network({ base, newPage }, { steps, hash = {} }) {
  const found = {};
  const page = await newPage();
  const frame = await openTab(page, base);
  for (const step of steps) {
    await goTo(page, frame, hashOf({ ...hash, s: step }));
    const heads = await text(frame, ".run-head .two:not(.weights)");
    const bars = await frame.$$eval(".run-head .bar", (all) => all.map((bar) => bar.getAttribute("aria-label")));
    await click(frame, ".net-title .button.small");
    found[step] = { heads, bars, rows: await rows(frame, ".net") };
    await click(frame, "button[aria-label='Show the network as a picture']");
  }
  return found;
}

/** The tables of a layer and a channel, and the account. */
export async function layer({ base, newPage }, { layer, run, channel, step }) {
  const page = await newPage();
  const frame = await openTab(page, base, { hash: hashOf({ v: "layer", s: step, l: layer, r: run, c: channel }) });
  const metrics = await frame.$$eval(".metric", (all) =>
    all.map((one) => [...one.children].map((part) => part.textContent)),
  );
  const changes = await text(frame, ".changes li");
  const violation = await text(frame, ".violation");
  await click(frame, ".inspector .button[aria-label^=View]");
  const records = await rows(frame, ".inspector");
  await click(frame, ".layer-title .button.small");
  const channels = await rows(frame, ".layer-panel");
  const account = { runs: await text(frame, ".records thead th"), rows: await rows(frame, ".records") };
  return { metrics: Object.fromEntries(metrics), changes, violation, records, channels, account };
}
