// Runs that go on, appear, vanish; a server that goes away.
import { axe, idle, openTab } from "../../../frontend/scripts/browser.mjs";
import { hashOf, press, rows, text } from "../visit.mjs";

/** Waits for the index to be what is expected, then reloads as a user does. */
async function reload(page, frame, expected) {
  await page.evaluate(async (wanted) => {
    const now = async () => {
      const { runs } = await (await fetch("data/plugin/pastnet/index")).json();
      return JSON.stringify(Object.fromEntries(runs.map((run) => [run.name, [run.last_step, run.lineages.length]])));
    };
    while ((await now()) !== wanted) await new Promise((resolve) => setTimeout(resolve, 100));
  }, JSON.stringify(expected));
  const index = page.waitForResponse((response) => response.url().endsWith("/pastnet/index"));
  await page.click("app-header-reload button");
  await index;
  await idle(frame);
}

const heat = (frame) => frame.$$eval(".heat-plot canvas", (all) => all[1]?.ariaLabel);

/** A run that is open: followed at its end, left behind, followed again; resumed from an earlier step. */
export async function growing({ base, newPage, tell }, { layer, run, stages }) {
  const page = await newPage();
  let asked = [];
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.pathname.endsWith("/layer")) asked.push(url.searchParams.get("since"));
  });
  const frame = await openTab(page, base, { hash: hashOf({ v: "layer", l: layer, r: run }) });
  const look = async () => ({
    asked: asked.splice(0),
    side: await text(frame, ".runs .sub"),
    live: (await frame.$$(".runs .live")).length,
    pill: await text(frame, ".heat .pill"),
    heat: await heat(frame),
    account: await text(frame, ".under-panel"),
    alerts: await text(frame, "[role=alert]"),
    skeletons: (await frame.$$(".skeleton")).length,
  });
  const found = [await look()];
  for (const { keys, runs } of stages) {
    await frame.click(".layer-title h1"); // keys go to the frame that was clicked last
    await press(frame, ...keys);
    asked = [];
    tell("write");
    await reload(page, frame, runs);
    found.push(await look());
  }
  await frame.click(".layer-title h1");
  await press(frame, "End");
  found.push(await look());
  const flags = await text(frame, ".flags li");
  await frame.click(".layer-title .button.small");
  await idle(frame);
  return { found, flags, table: await rows(frame, ".layer-panel") };
}

/** Runs that appear, vanish and are renamed while the page shows them. */
export async function coming({ base, newPage, tell }, { hash, runs }) {
  const page = await newPage();
  const frame = await openTab(page, base, { hash: hashOf(hash) });
  const look = async () => ({
    tabs: await text(frame, ".run-tabs .path"),
    chosen: await text(frame, ".run-tabs [aria-pressed=true] .path"),
    side: await text(frame, ".runs .path"),
    colours: await frame.$$eval(".runs .marker > *", (all) => all.map((one) => one.getAttribute("fill"))),
    tags: await frame.$$eval(".tag[aria-pressed=true]", (all) => all.map((one) => one.ariaLabel)),
    alerts: await text(frame, "[role=alert]"),
    heat: await heat(frame),
  });
  const found = [await look()];
  tell("change");
  await reload(page, frame, runs);
  found.push(await look());
  await frame.click(".layer-title h1");
  await press(frame, "Escape", "Escape");
  found.push({ heads: await text(frame, ".run-head-name .path"), alerts: await text(frame, "[role=alert]") });
  return found;
}

/** Waits until the server answers, or doesn't any more. It asks seldom: a server that ends has other things to do. */
async function answers(page, wanted) {
  await page.evaluate(async (expected) => {
    const now = () =>
      fetch("data/plugin/pastnet/index").then(
        (one) => one.ok,
        () => false,
      );
    while ((await now()) !== expected) await new Promise((resolve) => setTimeout(resolve, 100));
  }, wanted);
}

/** A server that is gone when a layer is asked for, and comes back with other runs. */
export async function leaving({ base, newPage, tell, seen }, { layer, run }) {
  const page = await newPage();
  const frame = await openTab(page, base, { hash: hashOf({ v: "layer", l: layer, r: run }) });
  tell("stop");
  await answers(page, false);
  await press(frame, "j");
  const gone = {
    alerts: await text(frame, "[role=alert] p"),
    side: await text(frame, ".runs .path"),
    title: await text(frame, ".layer-title h1"),
    axe: await axe(frame),
  };
  await press(frame, "k");
  const before = { heat: await heat(frame), alerts: await text(frame, ".layer-panel > [role=alert] p") };
  await press(frame, "j");
  tell("start");
  await answers(page, true);
  await frame.click("[role=alert] button");
  await idle(frame);
  // What the browser says of requests that met no server.
  seen.errors = seen.errors.filter((text) => !text.startsWith("Failed to load resource"));
  return {
    gone,
    before,
    back: {
      alerts: await text(frame, "[role=alert] p"),
      side: await text(frame, ".runs .path"),
      heat: await heat(frame),
    },
  };
}
