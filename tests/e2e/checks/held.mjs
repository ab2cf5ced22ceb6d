// Pruned weights, the list of violations, and what a layer says of its masks.
import { axe, idle } from "../../../frontend/scripts/browser.mjs";
import { click, goTo, hash, hashOf, NETWORK, openFrame, press, rows, text } from "../visit.mjs";

/** What the heads, the table and the dot plot say of pruned weights. */
export async function weights({ base, newPage }, { steps }) {
  const found = {};
  const page = await newPage();
  const frame = await openFrame(page, base, { hash: NETWORK });
  for (const step of steps) {
    await goTo(page, frame, hashOf({ v: "network", s: step, d: "sparsity" }));
    const heads = await text(frame, ".run-head .weights b");
    const titles = await frame.$$eval(".run-head .weights", (all) => all.map((one) => one.title));
    const dots = await frame.getAttribute(".dots-column canvas", "aria-label");
    await click(frame, ".net-title .button.small");
    const titlesOfTable = await text(frame, ".net thead th");
    found[step] = { heads, titles, dots, titlesOfTable, rows: await rows(frame, ".net") };
    await click(frame, "button[aria-label='Show the network as a picture']");
  }
  return found;
}

/** The list of violations: opened, sorted, followed, come back to, closed; and what axe finds. */
export async function audit({ base, newPage }, { variable, channel }) {
  const page = await newPage();
  const asked = [];
  page.on("request", (request) => request.url().includes("/violations?") && asked.push(request.url()));
  const frame = await openFrame(page, base, { hash: NETWORK });
  const found = { badges: await text(frame, ".run-head .badge"), early: [...asked] };
  found.badgesOfRows = (await text(frame, ".net-name .badge")).map((one) => one.split(" ")[0]);
  await click(frame, ".run-head .badge");
  found.axe = await axe(frame);
  found.rows = await rows(frame, ".audit");
  found.summary = await text(frame, ".audit-summary");
  found.sorts = await frame.$$eval(".audit thead th", (all) => all.map((one) => one.ariaSort));
  await click(frame, ".audit thead button:has-text('Changed by up to')");
  await click(frame, ".audit thead button:has-text('Changed by up to')");
  found.largest = (await rows(frame, ".audit")).map((row) => row[5]);
  await frame.press(".audit", "Escape");
  await idle(frame);
  found.closed = {
    open: (await frame.$$("dialog[open]")).length,
    focus: await frame.evaluate(() => document.activeElement.className),
  };
  await press(frame, "v", "Escape");
  found.keys = (await frame.$$("dialog[open]")).length;
  await click(frame, ".run-head .badge");
  await frame.focus(`.audit button[aria-label*="Channel ${channel} of ${variable}:"]`);
  await page.keyboard.press("Enter");
  await frame.waitForSelector(".layer-view");
  await idle(frame);
  found.channel = {
    hash: await hash(page),
    titles: await text(frame, ".layer-title h1, .inspector h2"),
    pill: await text(frame, ".heat .pill"),
    open: (await frame.$$("dialog[open]")).length,
    violation: await text(frame, ".violation p"),
    axe: await axe(frame),
  };
  await page.goBack();
  await frame.waitForSelector("dialog[open]");
  await idle(frame);
  found.back = await hash(page);
  await frame.selectOption(".audit select", "calm");
  await idle(frame);
  found.none = { text: await text(frame, ".audit-none"), axe: await axe(frame) };
  const dark = await openFrame(await newPage(), base, { dark: true, hash: found.back.replace(/^#pastnet/, "") });
  found.dark = { axe: await axe(dark), rows: (await rows(dark, ".audit")).length };
  return found;
}

/** What a layer says of its masks. */
export async function masks({ base, newPage }, { layer, run, channel, step }) {
  const page = await newPage();
  const frame = await openFrame(page, base, { hash: hashOf({ v: "layer", s: step, l: layer, r: run, c: channel }) });
  return {
    flags: await text(frame, ".flags li"),
    short: await text(frame, ".flag-text"),
    density: await text(frame, ".density-key"),
    labels: await frame.$$eval(".inspector canvas", (all) => all.map((one) => one.ariaLabel)),
    violation: await text(frame, ".violation p"),
    marks: await frame.$$eval(".violation-mark", (all) => all.map((one) => one.ariaLabel)),
    axe: await axe(frame),
  };
}
