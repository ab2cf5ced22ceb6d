// What a check works with: pages whose errors are kept, and readers of what they show.
import { idle } from "../../frontend/scripts/browser.mjs";

/** How busy a machine is must not decide a test. */
const PATIENCE_MS = 240_000;

/**
 * One check's stay in the browser at an address. `seen` holds what went wrong on the way: errors of the console and of
 * scripts, what the policy blocked, dialogs. `tell` answers before the check is done.
 */
export function visit(browser, base, tell) {
  const seen = { errors: [], policy: [], dialogs: [] };
  const open = [];

  /** A new page on its own. `strict` takes unsafe-eval out of the frame's policy: TensorBoard's is to go. */
  async function newPage({ strict = false, width = 1440, height = 900, ratio = 1 } = {}) {
    const context = await browser.newContext({
      viewport: { width, height },
      deviceScaleFactor: ratio,
      acceptDownloads: true,
    });
    context.setDefaultTimeout(PATIENCE_MS);
    open.push(context);
    const page = await context.newPage();
    page.on("close", () => context.close().catch(() => {}));
    page.on("console", (message) => {
      // Chromium asks for one where we frame the page ourselves.
      const { url } = message.location();
      if (message.type() === "error" && !url.endsWith("/favicon.ico")) seen.errors.push(message.text());
    });
    page.on("pageerror", (error) => seen.errors.push(String(error.stack)));
    page.on("dialog", (dialog) => {
      seen.dialogs.push(dialog.message());
      dialog.dismiss();
    });
    await page.exposeFunction("__policy", (text) => seen.policy.push(text));
    await page.addInitScript(() => {
      addEventListener("securitypolicyviolation", (e) =>
        window.__policy(`${e.violatedDirective} ${e.blockedURI} ${e.sample}`),
      );
    });
    if (strict) await withoutEval(page, seen);
    return page;
  }

  const leave = () => Promise.all(open.map((context) => context.close()));
  return { base, seen, newPage, leave, tell };
}

async function withoutEval(page, seen) {
  await page.route("**/data/plugin_entry.html*", async (route) => {
    const response = await route.fetch();
    const headers = response.headers();
    const policy = headers["content-security-policy"];
    if (!policy?.includes("'unsafe-eval'")) seen.errors.push(`no unsafe-eval to take out of ${policy}`);
    headers["content-security-policy"] = policy.replace("'unsafe-eval'", "");
    await route.fulfill({ response, headers });
  });
}

export const text = (frame, selector) => frame.$$eval(selector, (found) => found.map((element) => element.textContent));

/** The cells of a table's body. */
export const rows = (frame, selector) =>
  frame.$$eval(`${selector} tbody tr`, (lines) =>
    lines.map((line) => [...line.children].map((cell) => cell.textContent)),
  );

export const hash = (page) => page.evaluate(() => location.hash);

export const press = async (frame, ...keys) => {
  for (const key of keys) {
    await frame.press("body", key);
    await idle(frame);
  }
};

export const click = async (frame, selector) => {
  await frame.click(selector);
  await idle(frame);
};

/** Waits until a change of the window or the theme, which the page hears of later, is painted. */
export const painted = async (frame) => {
  await frame.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  await idle(frame);
};

/** Another address of the tab, without loading it anew, as Back does. */
export const changeHash = (page, hash) =>
  page.evaluate(
    (next) =>
      location.hash === next ||
      new Promise((resolve) => {
        addEventListener("hashchange", resolve, { once: true });
        location.hash = next;
      }),
    hash,
  );

/** Goes to another address of the tab, and waits until that is shown. */
export const goTo = async (page, frame, at) => {
  await changeHash(page, `#pastnet${at}`);
  await idle(frame);
};

/** Lays our page into this one, and answers it, as TensorBoard does: a bar above, the theme, the names of the runs. */
function frameIt(dark) {
  const runs = JSON.parse(document.querySelector("pre").textContent);
  let port;
  addEventListener("message", ({ data, ports }) => {
    if (data !== "experimental.bootstrap") return;
    [port] = ports;
    port.onmessage = (message) => {
      const { type, id } = JSON.parse(message.data);
      port.postMessage(JSON.stringify({ type, id, payload: runs, error: null, isReply: true }));
    };
  });
  /** As after TensorBoard has reloaded: data may be new. */
  window.reloadData = () =>
    port.postMessage(JSON.stringify({ type: "experimental.DataReloaded", id: 0, payload: null, error: null, isReply: false }));
  history.replaceState(null, "", `/${location.hash}`);
  document.body.classList.toggle("dark-mode", dark);
  const frame = document.createElement("iframe");
  frame.src = "/data/plugin_entry.html?name=pastnet";
  frame.style = "position: fixed; inset: 64px 0 0; width: 100%; height: calc(100% - 64px); border: 0";
  document.body.replaceChildren(frame);
}

/**
 * Opens the page in a frame of TensorBoard's server and gives that, idle. What TensorBoard shows around it, which takes
 * longer to load than all of ours, is left out: `openTab` brings it.
 */
export async function openFrame(page, base, { hash = "", dark = false } = {}) {
  await page.goto(`${base}/data/runs#pastnet${hash}`);
  await page.evaluate(frameIt, dark);
  const frame = await (await page.waitForSelector("iframe")).contentFrame();
  await idle(frame);
  return frame;
}

/** What a function finds in the tab, in windows of some widths. */
export async function atWidths({ base, newPage }, { hash, widths }, look) {
  const page = await newPage();
  const frame = await openFrame(page, base, { hash: hashOf(hash) });
  const found = {};
  for (const width of widths) {
    await page.setViewportSize({ width, height: 900 });
    await painted(frame);
    found[width] = await frame.evaluate(look);
  }
  return found;
}

/**
 * Opens an address afresh in a page that showed another: nothing is left of that, for we keep nothing in the browser.
 */
export const afresh = async (page, base, at) => {
  await page.goto("about:blank");
  return openFrame(page, base, { hash: at.replace(/^#pastnet/, "") });
};

/**
 * What `read` sees at each station of a walk in a page of its own. It is opened at the last one and goes back from there
 * by addresses: whatever a station's address lacks, none before it has brought. That an address shows the same when it is
 * opened afresh is shown of all fields in test_addresses.py.
 */
export async function elsewhere({ base, newPage }, stations, read) {
  const page = await newPage();
  const frame = await afresh(page, base, stations.at(-1).hash);
  const found = [];
  for (const { hash } of stations.toReversed()) {
    await goTo(page, frame, hash.replace(/^#pastnet/, ""));
    found.unshift(await read(frame));
  }
  await page.close();
  return found;
}

/** Our part of an address. */
export const hashOf = (fields) =>
  Object.entries(fields)
    .map(([key, value]) => `&p.pastnet.${key}=${encodeURIComponent(value)}`)
    .join("");

/** The address of the Network view. */
export const NETWORK = hashOf({ v: "network" });

/** What tells one state of the page from another. */
export const state = (frame) =>
  frame.evaluate(() => ({
    titles: [...document.querySelectorAll("h1, .inspector h2")].map((element) => element.textContent),
    pill: document.querySelector(".pill")?.textContent ?? null,
    ticks: [...document.querySelectorAll(".axis .tick")].map((element) => element.textContent),
    pressed: [...document.querySelectorAll("[aria-pressed=true]")].map((element) => element.textContent),
    selects: [...document.querySelectorAll("select")].map((element) => element.value),
    ticked: [...document.querySelectorAll(".runs input")].map((element) => element.checked),
    filters: [...document.querySelectorAll(".filter input")].map((element) => element.value),
    names: [...document.querySelectorAll(".net-name .plain")].map((element) => element.textContent),
    threshold: document.querySelector("#threshold")?.getAttribute("aria-valuetext") ?? null,
  }));
