// The numbers that the page shows, from its tables.
import { click, goTo, hashOf, NETWORK, openFrame, painted, press, rows, text } from "../visit.mjs";

/** The network's table at some steps, and what stands above it. */
export async function network({ base, newPage }, { steps, hash = {} }) {
  const found = {};
  const page = await newPage();
  const frame = await openFrame(page, base, { hash: NETWORK });
  for (const step of steps) {
    await goTo(page, frame, hashOf({ v: "network", ...hash, s: step }));
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
  const frame = await openFrame(page, base, { hash: hashOf({ v: "layer", s: step, l: layer, r: run, c: channel }) });
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

/** Of which run and step the legend is, and its numbers. */
const legend = async (frame) => ({
  of: await frame.$eval("[aria-label='Channel states'] .sub", (one) => one.textContent),
  numbers: await text(frame, ".legend .number"),
});

/** Heads, legend and table of the network in windows of some widths, and what of them can't be seen. */
export async function widths({ base, newPage }, { widths, step, runs }) {
  const found = {};
  const page = await newPage();
  for (const width of widths) {
    await page.setViewportSize({ width, height: 900 });
    const frame = await openFrame(page, base, { hash: hashOf({ v: "network", s: step }) });
    const seen = { heads: {}, legends: {}, hidden: [] };
    for (const run of runs) {
      const head = await frame.$(`.run-head[title=${JSON.stringify(run)}]`);
      await head.scrollIntoViewIfNeeded();
      await painted(frame);
      const line = await head.$(".two:not(.weights)");
      seen.heads[run] = await line.textContent();
      if (!(await line.isVisible())) seen.hidden.push(`head of ${run}`);
    }
    for (const run of runs) {
      await goTo(page, frame, hashOf({ v: "network", s: step, r: run }));
      const toggle = await frame.$(".side-toggle");
      if (await toggle.isVisible()) await click(frame, ".side-toggle");
      seen.legends[run] = await legend(frame);
      if (!(await frame.isVisible(".legend .number"))) seen.hidden.push(`legend of ${run}`);
      if (await toggle.isVisible()) await click(frame, ".side-toggle");
    }
    await click(frame, ".net-title .button.small");
    seen.table = await rows(frame, ".net");
    found[width] = seen;
  }
  return found;
}

/** Goes so many records to the right and back by keys. */
export async function arrows({ base, newPage }, { width, step, times }) {
  const page = await newPage({ width });
  const frame = await openFrame(page, base, { hash: hashOf({ v: "network", s: step }) });
  await frame.click("h1"); // keys go to the frame that was clicked last
  const found = {};
  for (const side of ["right", "left"]) {
    found[side] = [];
    for (let i = 0; i < times; i++) {
      await press(frame, side === "right" ? "ArrowRight" : "ArrowLeft");
      const address = await frame.evaluate(() => document.documentElement.dataset.pastnetUrl);
      found[side].push({
        step: Number(/p\.pastnet\.s=(\d+)/.exec(address)?.[1]),
        pill: await text(frame, ".run-head .pill"),
        heads: await text(frame, ".run-head .two:not(.weights)"),
        legend: (await legend(frame)).of,
      });
    }
  }
  return found;
}
