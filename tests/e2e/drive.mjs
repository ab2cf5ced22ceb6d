// Drives the page inside a running TensorBoard: node drive.mjs BASE CHECK [JSON arguments]. Prints what it saw as JSON;
// the Python tests judge it. Nothing sleeps: the page says when it is idle.
import { axe, idle, launch, openTab } from "../../frontend/scripts/browser.mjs";
import { heldChecks } from "./held.mjs";

const [base, check, extra = "{}"] = process.argv.slice(2);
const browser = await launch();
const seen = { errors: [], policy: [], dialogs: [] };

/** A new page whose errors are kept. `strict` takes unsafe-eval out of the frame's policy: TensorBoard's is to go. */
async function newPage({ strict = false, width = 1440, height = 900 } = {}) {
  const page = await browser.newPage({ viewport: { width, height }, acceptDownloads: true });
  page.on("console", (message) => message.type() === "error" && seen.errors.push(message.text()));
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
  if (strict) {
    await page.route("**/data/plugin_entry.html*", async (route) => {
      const response = await route.fetch();
      const headers = response.headers();
      const policy = headers["content-security-policy"];
      if (!policy?.includes("'unsafe-eval'")) seen.errors.push(`no unsafe-eval to take out of ${policy}`);
      headers["content-security-policy"] = policy.replace("'unsafe-eval'", "");
      await route.fulfill({ response, headers });
    });
  }
  return page;
}

const text = (frame, selector) => frame.$$eval(selector, (found) => found.map((element) => element.textContent));
const rows = (frame, selector) =>
  frame.$$eval(`${selector} tbody tr`, (lines) =>
    lines.map((line) => [...line.children].map((cell) => cell.textContent)),
  );
const hash = (page) => page.evaluate(() => location.hash);

/** What tells one state of the page from another. */
const state = (frame) =>
  frame.evaluate(() => ({
    titles: [...document.querySelectorAll("h1, .inspector h2")].map((element) => element.textContent),
    pill: document.querySelector(".pill")?.textContent ?? null,
    ticks: [...document.querySelectorAll(".axis .tick")].map((element) => element.textContent),
    pressed: [...document.querySelectorAll("[aria-pressed=true]")].map((element) => element.textContent),
    selects: [...document.querySelectorAll("select")].map((element) => element.value),
    ticked: [...document.querySelectorAll(".runs input")].map((element) => element.checked),
    filters: [...document.querySelectorAll(".filter input")].map((element) => element.value),
    names: [...document.querySelectorAll(".net-name .plain")].map((element) => element.textContent),
    threshold: document.querySelector("#threshold").getAttribute("aria-valuetext"),
  }));

const press = async (frame, ...keys) => {
  for (const key of keys) {
    await frame.press("body", key);
    await idle(frame);
  }
};
const click = async (frame, selector) => {
  await frame.click(selector);
  await idle(frame);
};

const checks = {
  /** Each view in each theme: what axe finds, and whether the frame has the theme's background. */
  async look({ layer, run, shots }) {
    const found = {};
    for (const dark of [false, true]) {
      for (const view of ["network", "layer"]) {
        const page = await newPage({ strict: true });
        const at =
          view === "layer"
            ? `&p.pastnet.v=layer&p.pastnet.l=${encodeURIComponent(layer)}&p.pastnet.r=${encodeURIComponent(run)}&p.pastnet.c=0`
            : "";
        const frame = await openTab(page, base, { dark, hash: at });
        const name = `${view} ${dark ? "dark" : "light"}`;
        found[name] = {
          axe: await axe(frame),
          background: await frame.evaluate(() => getComputedStyle(document.documentElement).backgroundColor),
          canvases: await frame.$$eval("canvas", (all) =>
            all.map((canvas) => ({
              role: canvas.getAttribute("role"),
              label: canvas.getAttribute("aria-label"),
              colours: new Set(
                new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer),
              ).size,
            })),
          ),
        };
        if (shots) await page.screenshot({ path: `${shots}/${name.replace(" ", "-")}.png` });
        await click(frame, ".net-title .button.small, .layer-title .button.small");
        found[`${name} table`] = { axe: await axe(frame) };
        await press(frame, "?");
        found[`${name} keys`] = { axe: await axe(frame) };
        await page.close();
      }
    }
    return found;
  },

  /** The network's table at some steps, and what stands above it. */
  async network({ steps }) {
    const found = {};
    for (const step of steps) {
      const page = await newPage();
      const frame = await openTab(page, base, { hash: `&p.pastnet.s=${step}` });
      const heads = await text(frame, ".run-head .two:not(.weights)");
      const bars = await frame.$$eval(".run-head .bar", (all) => all.map((bar) => bar.getAttribute("aria-label")));
      await click(frame, ".net-title .button.small");
      found[step] = { heads, bars, rows: await rows(frame, ".net") };
      await page.close();
    }
    return found;
  },

  /** The tables of a layer and a channel, and the account. */
  async layer({ layer, run, channel, step }) {
    const page = await newPage();
    const at = `&p.pastnet.v=layer&p.pastnet.s=${step}&p.pastnet.l=${encodeURIComponent(layer)}&p.pastnet.r=${encodeURIComponent(run)}&p.pastnet.c=${channel}`;
    const frame = await openTab(page, base, { hash: at });
    const metrics = await frame.$$eval(".metric", (all) =>
      all.map((one) => [...one.children].map((part) => part.textContent)),
    );
    const changes = await text(frame, ".changes li");
    const violation = await text(frame, ".violation");
    await click(frame, ".inspector .button.small");
    const records = await rows(frame, ".inspector");
    await click(frame, ".layer-title .button.small");
    const channels = await rows(frame, ".layer-panel");
    const account = { runs: await text(frame, ".records thead th"), rows: await rows(frame, ".records") };
    return { metrics: Object.fromEntries(metrics), changes, violation, records, channels, account };
  },

  /** Names as the page has them. */
  async names() {
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
  },

  /** A walk by pointer and keys, Back all the way, and each address opened afresh. */
  async walk({ layer }) {
    const page = await newPage();
    const frame = await openTab(page, base);
    const history = await page.evaluate(() => JSON.stringify(history.state));
    const stations = [];
    const keep = async (name) => {
      await page.waitForFunction(() => true);
      stations.push({ name, hash: await hash(page), state: await state(frame) });
    };
    const settled = async () => {
      // The address follows after a moment, so that dragging doesn't write it too often.
      const link = await frame.evaluate(() => document.documentElement.dataset.pastnetUrl ?? "");
      await page.waitForFunction((expected) => location.hash === expected, link);
    };
    await frame.click("h1"); // keys go to the frame that was clicked last
    await settled();
    await keep("network");
    await press(frame, "ArrowLeft", "Shift+ArrowLeft");
    await settled();
    await keep("step");
    await click(frame, `.layer-name[title^=${JSON.stringify(`${layer}:`)}]`);
    await settled();
    await keep("layer");
    await press(frame, "ArrowDown", "ArrowDown");
    await click(frame, ".controls .button:has-text('State'):not(:has-text('Δ'))");
    await frame.selectOption(".sort", "index");
    await idle(frame);
    await settled();
    await keep("channel");
    const backs = [];
    await page.goBack();
    await frame.waitForSelector(".net");
    await idle(frame);
    backs.push({ hash: await hash(page), state: await state(frame) });
    await page.goForward();
    await frame.waitForSelector(".layer-view");
    await idle(frame);
    backs.push({ hash: await hash(page), state: await state(frame) });
    const afresh = [];
    for (const station of stations) {
      const other = await newPage();
      afresh.push({
        name: station.name,
        state: await state(await openTab(other, base, { hash: station.hash.replace(/^#pastnet/, "") })),
      });
      await other.close();
    }
    return { stations, backs, afresh, history, after: await page.evaluate(() => JSON.stringify(history.state)) };
  },

  /** Filters, ticks, zoom, threshold, drill and badge. */
  async interact() {
    const page = await newPage();
    const frame = await openTab(page, base);
    const found = {};
    const names = () => text(frame, ".net-name .plain bdi");
    const heads = () => text(frame, ".run-head .path");
    await frame.fill("#layer-filter", "conv");
    await idle(frame);
    found.filtered = await names();
    await frame.fill("#layer-filter", "conv(");
    await idle(frame);
    found.wrong = {
      names: await names(),
      invalid: await frame.getAttribute("#layer-filter", "aria-invalid"),
      decoration: await frame.$eval("#layer-filter", (e) => getComputedStyle(e).textDecorationLine),
    };
    await frame.fill("#layer-filter", "");
    await frame.fill("#run-filter", "^pruned$");
    await idle(frame);
    found.runs = await heads();
    await frame.fill("#run-filter", "");
    await frame.$eval("#run-filter", (e) => e.blur());
    await click(frame, ".runs input");
    found.unticked = await heads();
    await click(frame, ".runs input");
    const column = await (await frame.$(".run-column")).boundingBox();
    const y = column.y + 30;
    await page.mouse.move(column.x + column.width * 0.5, y);
    await idle(frame);
    found.hover = {
      pill: await text(frame, ".pill"),
      tip: await text(frame, ".tooltip .tip-run"),
      cross: await frame.$$eval(".crosshair", (all) => all.length),
    };
    await page.mouse.move(column.x + column.width * 0.25, y);
    await page.mouse.down();
    await page.mouse.move(column.x + column.width * 0.5, y, { steps: 4 });
    await page.mouse.up();
    await idle(frame);
    found.zoomed = await text(frame, ".run-head .tick");
    found.zoomStep = (await hash(page)).includes("p.pastnet.s=");
    await press(frame, "0");
    found.reset = await text(frame, ".run-head .tick");
    await page.mouse.dblclick(column.x + 20, column.y + 62 + 30);
    await frame.waitForSelector(".layer-view");
    await idle(frame);
    found.drilled = await text(frame, ".layer-title h1");
    await press(frame, "Escape");
    found.up = (await frame.$$(".net")).length;
    await click(frame, ".net-name .badge");
    await frame.waitForSelector(".violation");
    await idle(frame);
    found.badge = {
      title: await text(frame, ".inspector h2"),
      violation: await text(frame, ".violation"),
      pill: await text(frame, ".heat .pill"),
    };
    await frame.focus("#threshold");
    for (let i = 0; i < 10; i++) await frame.press("#threshold", "ArrowRight");
    await frame.waitForFunction(() => document.documentElement.dataset.pastnetUrl?.includes("p.pastnet.th="));
    await idle(frame);
    found.threshold = await frame.getAttribute("#threshold", "aria-valuetext");
    return found;
  },

  /** A route that fails, and Retry. */
  async failure() {
    const page = await newPage();
    let broken = true;
    await page.route("**/overview?*", (route) =>
      broken
        ? route.fulfill({
            status: 500,
            contentType: "application/json",
            body: '{"schema":1,"error":{"code":"internal","message":"Could not read the run. <b>Try</b> again."}}',
          })
        : route.continue(),
    );
    const frame = await openTab(page, base);
    const alerts = await text(frame, "[role=alert] p");
    const page_ = { names: await text(frame, ".net-name .plain bdi"), bold: (await frame.$$("[role=alert] b")).length };
    broken = false;
    seen.errors.length = 0;
    await click(frame, "[role=alert] button");
    await page.mouse.move(2, 2);
    await idle(frame);
    return { alerts, ...page_, after: await text(frame, "[role=alert] p"), heads: await text(frame, ".run-head .two") };
  },

  /** Copy link and both downloads. */
  async take() {
    const page = await newPage();
    const frame = await openTab(page, base, { hash: "&p.pastnet.s=7" });
    await frame.evaluate(() => {
      Object.defineProperty(navigator, "clipboard", { value: undefined });
      document.execCommand = (command) => {
        window.__copied = [command, document.activeElement.value];
        return true;
      };
    });
    await click(frame, ".toolbar button:has-text('Copy link')");
    const link = await frame.evaluate(() => window.__copied);
    const save = async (label) => {
      await click(frame, ".download > button");
      const waiting = page.waitForEvent("download");
      await frame.click(`.menu button:has-text(${JSON.stringify(label)})`);
      const download = await waiting;
      const chunks = [];
      for await (const chunk of await download.createReadStream()) chunks.push(chunk);
      return { name: download.suggestedFilename(), head: Buffer.concat(chunks).subarray(0, 200).toString("latin1") };
    };
    return { link, png: await save("PNG"), csv: await save("CSV of dense") };
  },

  /** The tab of a log directory without our data. */
  async empty() {
    const page = await newPage();
    const frame = await openTab(page, base);
    return { text: await text(frame, ".empty"), lines: await text(frame, "pre"), axe: await axe(frame) };
  },

  /** New records, once TensorBoard's own button reloads. */
  async reload({ last }) {
    const page = await newPage();
    const frame = await openTab(page, base);
    const before = await text(frame, ".runs .sub");
    process.stdout.write(`${JSON.stringify({ ready: before })}\n`);
    await page.evaluate(async (expected) => {
      const newest = async () => (await (await fetch("data/plugin/pastnet/index")).json()).runs[0].last_step;
      while ((await newest()) !== expected) await new Promise((resolve) => setTimeout(resolve, 200));
    }, last);
    await page.click("app-header-reload button");
    await frame.waitForFunction(
      (expected) => document.querySelector(".runs")?.textContent.includes(`step ${expected}`),
      last,
    );
    await idle(frame);
    return { before, after: await text(frame, ".runs .sub"), pill: await text(frame, ".pill") };
  },
};

try {
  const all = { ...checks, ...heldChecks({ base, newPage, text, rows, hash, press, click }) };
  const result = await all[check](JSON.parse(extra));
  process.stdout.write(`${JSON.stringify({ ...seen, result })}\n`);
} finally {
  await browser.close();
}
