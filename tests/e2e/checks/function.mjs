// The Function view: its numbers at steps, its address, what it teaches without a probe, errors, downloads, new records.
import { axe, idle, openTab } from "../../../frontend/scripts/browser.mjs";
import { click, elsewhere, goTo, hash, hashOf, openFrame, press, rows, state, text } from "../visit.mjs";

const PANELS = ["lines", "cells", "scatter"];

/** What the pictures say in words and numbers. */
async function pictures(frame) {
  return {
    measures: await text(frame, ".fn-title .button"),
    values: await frame.$$eval(".fn-values button", (all) =>
      all.map((one) => [one.title, one.querySelector(".number").textContent]),
    ),
    names: await frame.$$eval(".fn-names button", (all) => all.map((one) => one.title.split(": ")[0])),
    numbers: await text(frame, ".fn-numbers span"),
    readout: await text(frame, ".fn-scatter p:last-child"),
    probe: await text(frame, ".fn-probe li, .fn-probe p, .fn-probe summary"),
    labels: await frame.$$eval("main canvas", (all) => all.map((one) => [one.getAttribute("role"), one.ariaLabel])),
  };
}

/** The same as tables, and what axe finds in them; the pictures come back. */
async function tablesOf(frame, looked) {
  const found = {};
  for (const panel of PANELS) {
    await click(frame, `.fn-${panel} header .small`);
    found[panel] = { head: await text(frame, `.fn-${panel} thead th`), rows: await rows(frame, `.fn-${panel}`) };
  }
  if (looked) found.axe = await axe(frame);
  for (const panel of PANELS) await click(frame, `.fn-${panel} header .small`);
  return found;
}

/** Pictures and tables of each station; axe looks at the tables of the first ones. */
export async function functionNumbers({ base, newPage }, { stations, looked }) {
  const page = await newPage();
  const frame = await openFrame(page, base, { hash: hashOf({ v: "function" }) });
  const found = [];
  for (const station of stations) {
    await goTo(page, frame, hashOf({ v: "function", ...station }));
    found.push({ ...(await pictures(frame)), tables: await tablesOf(frame, found.length < looked) });
  }
  return found;
}

/** Keys and clicks, each address in another page, and Back. */
export async function functionWalk({ base, newPage }) {
  const page = await newPage();
  const frame = await openFrame(page, base, { hash: hashOf({ v: "function" }) });
  const stations = [];
  const seen = async (at) => ({ ...(await state(at)), ...(await pictures(at)) });
  const stop = async (name) => {
    await page.waitForFunction(
      (url) => location.hash === url,
      await frame.evaluate(() => document.documentElement.dataset.pastnetUrl),
    );
    stations.push({ name, hash: await hash(page), state: await seen(frame) });
  };
  await stop("start");
  await press(frame, "Home", "ArrowRight", "ArrowRight");
  await stop("step 3");
  await press(frame, "k", "k", "k", "]");
  await stop("second layer of the second run");
  await click(frame, ".fn-title .button:has-text('cosine')");
  await stop("cosine");
  const box = await (await frame.$(".fn-cells .fn-plot")).boundingBox();
  await page.mouse.click(box.x + box.width * 0.5, box.y + 3);
  await idle(frame);
  await stop("clicked the first layer");
  await page.mouse.move(box.x + box.width * 0.25, box.y + 3);
  await idle(frame);
  const hovered = { tip: await text(frame, ".tooltip"), pills: await text(frame, ".pill") };
  await page.mouse.move(2, 2);
  const anew = await elsewhere({ base, newPage }, stations, seen);
  const spoken = await text(frame, "[role=status]");
  await press(frame, "Enter");
  const opened = { titles: await text(frame, ".layer-title h1"), hash: await hash(page) };
  await page.goBack();
  await frame.waitForSelector(".fn-view");
  await idle(frame);
  return { stations, afresh: anew, hovered, spoken, opened, back: await hash(page) };
}

/** Both themes, and what axe finds. */
export async function functionLook({ base, newPage }) {
  const found = {};
  for (const dark of [false, true]) {
    const page = await newPage({ strict: true });
    const frame = await openFrame(page, base, { dark, hash: hashOf({ v: "function", s: 35, r: "freezing" }) });
    const colours = await frame.$$eval("main canvas", (all) =>
      all.map((canvas) => {
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return new Set(new Uint32Array(data.buffer)).size;
      }),
    );
    found[dark ? "dark" : "light"] = { axe: await axe(frame), colours, notes: await text(frame, ".fn-probe .note") };
  }
  return found;
}

/** Where none of the shown runs has a probe. */
export async function functionTeaches({ base, newPage }, { hidden }) {
  const page = await newPage();
  const frame = await openFrame(page, base, { hash: hashOf({ v: "function", x: hidden }) });
  return { text: await text(frame, ".empty p"), lines: await text(frame, "pre"), axe: await axe(frame) };
}

/** The route fails for one run, then works. */
export async function functionFails({ base, newPage, seen }, { run }) {
  const page = await newPage();
  let broken = true;
  await page.route(`**/function?run=${run}`, (route) =>
    broken
      ? route.fulfill({
          status: 500,
          contentType: "application/json",
          body: '{"schema":2,"error":{"code":"internal","message":"Could not read the probe. <b>Try</b> again."}}',
        })
      : route.continue(),
  );
  const frame = await openFrame(page, base, { hash: hashOf({ v: "function" }) });
  const before = { alerts: await text(frame, "[role=alert] p"), runs: await text(frame, ".fn-values .path") };
  broken = false;
  seen.errors.length = 0;
  await click(frame, "[role=alert] button");
  return { before, alerts: await text(frame, "[role=alert] p"), runs: await text(frame, ".fn-values .path") };
}

/** Answers that come one by one: what is shown after each of them. */
export async function functionSlowly({ base, newPage }, { runs }) {
  const page = await newPage();
  const held = new Map();
  await page.route("**/function?run=*", (route) => {
    held.set(new URL(route.request().url()).searchParams.get("run"), route);
  });
  const came = (run) => page.waitForResponse((answer) => answer.url().includes(`/function?run=${run}`));
  await page.goto(`${base}/#pastnet${hashOf({ v: "function" })}`);
  const frame = await (await page.waitForSelector('iframe[src*="name=pastnet"]')).contentFrame();
  await frame.waitForSelector(".skeleton");
  const shown = [];
  for (const run of runs) {
    const answer = came(run);
    while (!held.has(run)) await frame.evaluate(() => new Promise(requestAnimationFrame));
    await held.get(run).continue();
    await answer;
    await frame.waitForFunction(
      (count) => document.querySelectorAll(".fn-values button").length === count,
      shown.length + 1,
    );
    await frame.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    shown.push(await pictures(frame));
  }
  return shown;
}

/** The downloads of the view. */
export async function functionTake({ base, newPage }) {
  const page = await newPage();
  const frame = await openFrame(page, base, { hash: hashOf({ v: "function" }) });
  const save = async (label) => {
    await click(frame, ".download > button");
    const menu = await text(frame, ".menu button");
    const waiting = page.waitForEvent("download");
    await frame.click(`.menu button:has-text(${JSON.stringify(label)})`);
    const download = await waiting;
    const chunks = [];
    for await (const chunk of await download.createReadStream()) chunks.push(chunk);
    return { menu, name: download.suggestedFilename(), data: Buffer.concat(chunks).toString("latin1") };
  };
  const png = await save("PNG");
  const found = { png: { ...png, data: png.data.slice(0, 8) }, csv: await save("CSV of") };
  const legend = async () => {
    const titles = ["Moving, Δ from", "Quiet", "Frozen", "Pruned", "Violated"];
    const { data } = await save("SVG");
    return titles.filter((title) => data.includes(`>${Buffer.from(title).toString("latin1")}`));
  };
  found.legends = [await legend()];
  for (const v of ["findings", "network"]) {
    await goTo(page, frame, hashOf({ v }));
    found.legends.push(await legend());
  }
  return found;
}

/** New records of the probe, once TensorBoard's own button reloads. */
export async function functionGrows({ base, newPage, tell }, { run, last }) {
  const page = await newPage();
  const frame = await openTab(page, base, { hash: hashOf({ v: "function" }) });
  const before = await pictures(frame);
  tell(before.values);
  await page.evaluate(async (expected) => {
    const newest = async () => (await (await fetch("data/plugin/pastnet/index")).json()).runs[0].last_step;
    while ((await newest()) !== expected) await new Promise((resolve) => setTimeout(resolve, 200));
  }, last);
  await page.click("app-header-reload button");
  await frame.waitForFunction(
    (count) => document.querySelector(".fn-probe")?.textContent.includes(count),
    `to ${last}`,
  );
  await idle(frame);
  return { run, before, after: await pictures(frame), pills: await text(frame, ".pill") };
}
