// Drives the tab of a running TensorBoard and prints what it took as JSON: node drive.mjs BASE [JSON options].
// Times go from the event's own timestamp to the second frame after a picture was there, or to the idle hook.
import { launch } from "../../frontend/scripts/browser.mjs";
import { idle, inputs, wait } from "./trace.mjs";

const [base, extra = "{}"] = process.argv.slice(2);
const options = { rounds: 5, layer: null, inputs: 40, ...JSON.parse(extra) };
const FRAME = 'iframe[src*="name=pastnet"]';

/** Keeps in the outer page when the last click was in any frame, and since when strips, heatmap and all were painted. */
function watch() {
  const top = window.parent;
  const now = () => performance.timeOrigin + performance.now();
  const clicked = (event) => {
    top.__times = { clicked: performance.timeOrigin + event.timeStamp };
  };
  addEventListener("click", clicked, true);
  if (top === window) return;
  const counts = {};
  /** The picture that was last to come counts, when the frame after it begins. */
  const watched = (name, selector) => {
    const count = document.querySelectorAll(selector).length;
    if (count === counts[name]) return;
    counts[name] = count;
    if (count > 0)
      requestAnimationFrame(() => requestAnimationFrame(() => Object.assign(top.__times, { [name]: now() })));
  };
  const seen = (changes) => {
    top.__times ??= { clicked: top.performance.timeOrigin };
    watched("strips", ".strips-label, .finding");
    watched("heat", ".heat-plot canvas");
    const idle = document.documentElement?.dataset.pastnetIdle === "true";
    if (idle && changes.some(({ type }) => type === "attributes")) top.__times.all = now();
  };
  const what = { subtree: true, childList: true, attributes: true, attributeFilter: ["data-pastnet-idle"] };
  new MutationObserver(seen).observe(document, what);
}

/** Milliseconds from the last click, or from the load of the outer page. */
const sinceClick = (page) =>
  page.evaluate(() => {
    const { clicked, ...times } = window.__times;
    return Object.fromEntries(Object.entries(times).map(([name, at]) => [name, at - clicked]));
  });

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

/** Milliseconds in which a picture comes and nothing is asked of the page, then between two looks, and of all patience. */
const [QUIET, LOOK, LONGEST] = [1000, 250, 600_000];

/** Waits for the end of all that a click asked for, by what the outer page has kept of it. */
async function settled(page) {
  const seen = () =>
    page.evaluate((selector) => {
      const { documentElement: root } = document.querySelector(selector)?.contentDocument ?? {};
      return root?.dataset.pastnetIdle === "true" && window.__times?.all;
    }, FRAME);
  const end = performance.now() + LONGEST;
  await wait(QUIET);
  for (let before = null, now = await seen(); !now || now !== before; now = await seen()) {
    if (performance.now() > end) throw new Error(`Could not measure: the page has work after ${LONGEST / 1000} s.`);
    before = now;
    await wait(LOOK);
  }
}

/** Clicks where an element is; whether something hides it isn't asked: that would be work in the frames that are timed. */
async function clickOn(page, locator) {
  const { x, y, width, height } = await locator.boundingBox();
  await page.mouse.click(x + Math.min(width / 2, 20), y + height / 2);
}

/** Opens the tab, by a click in another tab of TensorBoard or by its address. */
async function openTab(context, how) {
  const page = await context.newPage();
  await page.addInitScript(watch);
  await page.goto(`${base}/#${how === "tab" ? "timeseries" : "pastnet&p.pastnet.v=network"}`);
  if (how === "tab") {
    const tab = page.locator("[role=tab]", { hasText: /^\s*pastnet\s*$/i });
    await tab.waitFor();
    await page.waitForLoadState("networkidle");
    await clickOn(page, tab);
  }
  await settled(page);
  const frame = await (await page.$(FRAME)).contentFrame();
  const empty = await blank(frame);
  if (empty > 0) throw new Error(`Could not measure: expected no empty picture, got ${empty}.`);
  const routes = await fetched(frame);
  const memory = await frame.evaluate(() => performance.memory?.usedJSHeapSize ?? Number.NaN);
  return { page, frame, seen: { ...(await sinceClick(page)), routes, memory } };
}

/** Opens a layer by a click on its name: until its picture, and until all other runs' are there too. */
async function openLayer({ page, frame }, layer) {
  await frame.click(".toolbar .button:has-text('Network')");
  await frame.fill("#layer-filter", `^${layer}$`);
  await idle(frame);
  await frame.evaluate(() => performance.clearResourceTimings());
  await clickOn(page, frame.locator(".layer-name").first());
  await settled(page);
  return { ...(await sinceClick(page)), routes: await fetched(frame) };
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
    if (key === "load" && round === options.rounds - 1 && options.inputs > 0) {
      out.work = await inputs(browser, tab.page, tab.frame, options);
    }
    await tab.page.close();
  }
  await context.close();
}
await browser.close();
console.log(JSON.stringify(out));
