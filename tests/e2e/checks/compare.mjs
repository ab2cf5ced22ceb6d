// The Compare view: its numbers at steps, its address, runs of other origin, errors, downloads.
import { axe, idle } from "../../../frontend/scripts/browser.mjs";
import { afresh, click, elsewhere, goTo, hash, hashOf, openFrame, press, rows, text } from "../visit.mjs";

const open = async ({ base, newPage }, fields, more = {}) => {
  const page = await newPage(more);
  return { page, frame: await openFrame(page, base, { ...more, hash: hashOf({ v: "compare", ...fields }) }) };
};

/** What the pictures say in words and numbers. */
async function pictures(frame) {
  return {
    title: await text(frame, ".matrix-part .panel-line .sub"),
    cells: await rows(frame, ".matrix"),
    outlined: await frame.$$eval(".matrix td.on", (all) =>
      all.map((cell) => [cell.parentElement.rowIndex - 1, cell.cellIndex - 1]),
    ),
    pair: await frame.$$eval(".pair select", (all) => all.map((one) => one.value)),
    said: await text(frame, ".pair p"),
    layers: await frame.$$eval(".lap", (all) =>
      all.map((one) => [one.querySelector("bdi").textContent, one.querySelector(":scope > span").textContent]),
    ),
    on: await text(frame, ".lap.on bdi"),
    notes: await text(frame, ".compare .note"),
    titles: await text(frame, ".compare h1"),
    heads: await text(frame, ".side-head .sub"),
    legend: await text(frame, ".side-legend > span"),
    apart: await text(frame, ".apart p"),
    pressed: await text(frame, ".compare [aria-pressed=true]"),
    pills: await text(frame, ".pill"),
    labels: await frame.$$eval("main canvas", (all) => all.map((one) => [one.getAttribute("role"), one.ariaLabel])),
  };
}

const PANELS = { pairs: ".matrix-part", layers: ".laps-part", channels: ".compare-right" };

/** The same as tables, and what axe finds in them; the pictures come back. */
async function tablesOf(frame, looked) {
  const found = {};
  for (const [name, panel] of Object.entries(PANELS)) {
    await click(frame, `${panel} .panel-line .small`);
    found[name] = await rows(frame, `${panel} .table-scroll`);
  }
  if (looked) found.axe = await axe(frame);
  for (const panel of Object.values(PANELS)) await click(frame, `${panel} .panel-line .small`);
  return found;
}

/** Pictures and tables of each station; axe looks at the tables of the first ones. */
export async function compareNumbers(stay, { stations, looked }) {
  const { page, frame } = await open(stay, {});
  const found = [];
  for (const station of stations) {
    await goTo(page, frame, hashOf({ v: "compare", ...station }));
    found.push({ ...(await pictures(frame)), tables: await tablesOf(frame, found.length < looked) });
  }
  return found;
}

/** Clicks, keys and lists choose runs, layer and step; each address in another page, and Back. */
export async function compareWalk(stay) {
  const { page, frame } = await open(stay, {});
  const stations = [];
  const stop = async (name) => {
    const url = await frame.evaluate(() => document.documentElement.dataset.pastnetUrl);
    await page.waitForFunction((expected) => location.hash === expected, url);
    stations.push({ name, hash: await hash(page), state: await pictures(frame) });
  };
  await stop("start");
  await click(frame, ".matrix tbody tr:nth-child(3) td:nth-child(3)");
  await stop("cell");
  await press(frame, "[");
  await stop("previous A");
  await press(frame, "}");
  await stop("next B");
  await frame.selectOption(".pair label:first-child select", "ticket");
  await idle(frame);
  await stop("list");
  await press(frame, "j", "Home", "ArrowRight", "ArrowRight");
  await stop("layer and step by keys");
  const box = await (await frame.$(".lap-plot")).boundingBox();
  await page.mouse.click(box.x + box.width * 0.7, box.y + 6);
  await idle(frame);
  await stop("clicked the first layer");
  await page.mouse.move(box.x + box.width * 0.5, box.y + 40);
  await idle(frame);
  const hovered = { tip: await text(frame, ".tooltip > *"), pills: await text(frame, ".pill") };
  await page.mouse.move(2, 2);
  await click(frame, ".compare .button:has-text('Trainable')");
  await click(frame, ".compare .button:has-text('Channels')");
  await click(frame, ".compare .modes .button:last-child");
  await stop("channels, trainable, deltas");
  const anew = await elsewhere(stay, stations, pictures);
  await frame.waitForFunction(() => document.querySelector("[role=status]").textContent !== "");
  const spoken = await text(frame, "[role=status]");
  await click(frame, ".compare h1"); // a focused button would keep its Enter
  await press(frame, "Enter");
  const opened = { titles: await text(frame, ".layer-title h1"), hash: await hash(page) };
  await page.goBack();
  await frame.waitForSelector(".compare");
  await idle(frame);
  return { stations, afresh: anew, hovered, spoken, opened, back: await hash(page) };
}

/** Both themes with runs of one origin and of two, and what axe finds. */
export async function compareLook(stay) {
  const found = {};
  for (const dark of [false, true]) {
    const { page, frame } = await open(stay, {}, { dark, strict: true });
    for (const r2 of ["other", "seed"]) {
      await goTo(page, frame, hashOf({ v: "compare", r: "ticket", r2, s: 30 }));
      const name = `${r2} ${dark ? "dark" : "light"}`;
      found[name] = { axe: await axe(frame), colours: [] };
      found[name].colours = await frame.$$eval("main canvas", (all) =>
        all.map((canvas) => {
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          return new Set(new Uint32Array(data.buffer)).size;
        }),
      );
    }
    await page.close();
  }
  return found;
}

/** With one run shown, and with none. */
export async function compareFew(stay, { hidden }) {
  const page = await stay.newPage();
  const found = [];
  for (const x of hidden) {
    const frame = await afresh(page, stay.base, hashOf({ v: "compare", x }));
    found.push({ text: await text(frame, "main .message"), axe: await axe(frame) });
  }
  return found;
}

/** A route fails, the other panels stay; then it works. */
export async function compareFails(stay, { routes }) {
  const page = await stay.newPage();
  const found = {};
  for (const route of routes) {
    let broken = true;
    await page.route(
      (url) => url.pathname.endsWith(`/${route}`),
      (request) =>
        broken
          ? request.fulfill({
              status: 500,
              contentType: "application/json",
              body: '{"schema":2,"error":{"code":"internal","message":"Could not read a mask. <b>Try</b> again."}}',
            })
          : request.continue(),
    );
    const frame = await afresh(page, stay.base, hashOf({ v: "compare", r: "ticket", r2: "other" }));
    const state = async () => ({
      alerts: await text(frame, "[role=alert] p"),
      matrix: (await frame.$$(".matrix")).length,
      layers: (await frame.$$(".lap")).length,
      sides: (await frame.$$(".side canvas")).length,
    });
    const before = await state();
    broken = false;
    stay.seen.errors.length = 0;
    await click(frame, "[role=alert] button");
    found[route] = { before, after: await state() };
  }
  return found;
}

/** The downloads of the view. */
export async function compareTake(stay) {
  const { page, frame } = await open(stay, { r: "ticket", r2: "other", s: 30 });
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
  return {
    png: { ...png, data: png.data.slice(0, 8) },
    pairs: await save("all pairs"),
    layers: await save("by layer"),
    run: await save("CSV of 2 runs"),
  };
}
