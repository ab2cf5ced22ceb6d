// Drives the tab of a running TensorBoard and prints what it took as JSON: node drive.mjs BASE [JSON options].
// Times are from the event's own timestamp to the idle hook: all data there, rendered, and two frames painted.
import { idle, launch } from "../../frontend/scripts/browser.mjs";
import { inputs, trace } from "./trace.mjs";

const [base, extra = "{}"] = process.argv.slice(2);
const options = { rounds: 5, layer: null, inputs: 40, ...JSON.parse(extra) };
const FRAME = 'iframe[src*="name=pastnet"]';

/** Keeps in the outer page when the last click was in any frame, its heatmap was painted, and all was idle. */
function watch() {
  const top = window.parent;
  const clicked = (event) => {
    top.__clicked = performance.timeOrigin + event.timeStamp;
    top.__heat = top.__idle = undefined;
  };
  addEventListener("click", clicked, true);
  if (top === window) return;
  const seen = (changes) => {
    const root = document.documentElement;
    if (changes.some(({ type }) => type === "attributes") && root.dataset.pastnetIdle === "true") {
      top.__idle = performance.timeOrigin + performance.now();
    }
    if (!root?.querySelector(".heat-plot canvas") || top.__heat) return;
    top.__heat = Number.POSITIVE_INFINITY;
    requestAnimationFrame(() =>
      requestAnimationFrame(() => {
        top.__heat = performance.timeOrigin + performance.now();
      }),
    );
  };
  const what = { subtree: true, childList: true, attributes: true, attributeFilter: ["data-pastnet-idle"] };
  new MutationObserver(seen).observe(document, what);
}

/** Canvases in sight that have no pixel. */
const blank = (frame) =>
  frame.$$eval("canvas", (all) => {
    const empty = (one) => {
      const { data } = one.getContext("2d").getImageData(0, 0, one.width, one.height);
      return !data.some((value) => value !== 0);
    };
    return all.filter((one) => one.checkVisibility() && one.width > 0 && empty(one)).length;
  });

/** What was fetched since the list was cleared: by route the number of requests and their bytes. */
const fetched = (frame) =>
  frame.evaluate(() => {
    const routes = {};
    for (const one of performance.getEntriesByType("resource")) {
      const route = new URL(one.name).pathname.split("/").pop();
      routes[route] ??= { requests: 0, largest: 0, wire: 0, raw: 0, milliseconds: 0 };
      const own = routes[route];
      own.requests++;
      own.largest = Math.max(own.largest, one.encodedBodySize);
      own.wire += one.transferSize;
      own.raw += one.decodedBodySize;
      own.milliseconds = Math.max(own.milliseconds, one.responseEnd - one.startTime);
    }
    return routes;
  });

/** Opens the tab, by a click in another tab of TensorBoard or by its address. */
async function openTab(context, how) {
  const page = await context.newPage();
  await page.addInitScript(watch);
  await page.goto(`${base}/#${how === "tab" ? "timeseries" : "pastnet"}`);
  if (how === "tab") {
    const tab = page.locator("[role=tab]", { hasText: /^\s*pastnet\s*$/i });
    await tab.waitFor();
    await page.waitForLoadState("networkidle");
    await tab.click();
  }
  const frame = await (await page.waitForSelector(FRAME, { state: "attached" })).contentFrame();
  await idle(frame);
  const start = how === "tab" ? await page.evaluate(() => window.__clicked) : 0;
  const painted = await page.evaluate((from) => window.__idle - (from || performance.timeOrigin), start);
  const empty = await blank(frame);
  if (empty > 0) throw new Error(`Could not measure: expected no empty picture, got ${empty}.`);
  const routes = await fetched(frame);
  const memory = await frame.evaluate(() => performance.memory?.usedJSHeapSize ?? Number.NaN);
  return { page, frame, seen: { painted, routes, memory } };
}

/** Opens a layer by a click on its name: until its picture, and until all other runs' are there too. */
async function openLayer({ page, frame }, layer) {
  await frame.fill("#layer-filter", `^${layer}$`);
  await idle(frame);
  await frame.evaluate(() => performance.clearResourceTimings());
  await frame.click(".layer-name");
  await page.waitForFunction(() => Number.isFinite(window.__heat), null, { timeout: 60_000 });
  await idle(frame);
  const [painted, all] = await page.evaluate(() => [window.__heat, window.__idle].map((at) => at - window.__clicked));
  return { painted, all, routes: await fetched(frame) };
}

const browser = await launch();
const out = { tab: [], again: [], load: [], layer: [], work: {} };
for (let round = 0; round < options.rounds; round++) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  for (const [key, how] of [
    ["tab", "tab"],
    ["again", "tab"],
    ["load", "load"],
  ]) {
    const tab = await openTab(context, how);
    out[key].push(tab.seen);
    if (key === "tab" && options.layer) out.layer.push(await openLayer(tab, options.layer));
    if (key === "load" && round === options.rounds - 1) {
      out.work = await trace(browser, tab.page, () => inputs(tab.page, tab.frame, options));
    }
    await tab.page.close();
  }
  await context.close();
}
await browser.close();
console.log(JSON.stringify(out));
