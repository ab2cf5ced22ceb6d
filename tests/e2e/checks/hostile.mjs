// Names that want to be something else: each is shown as text, to the last letter, in every view.
import { readFile } from "node:fs/promises";
import { idle, openTab } from "../../../frontend/scripts/browser.mjs";
import { click, goTo, hashOf, NETWORK, press, text } from "../visit.mjs";

/** Which of the names no element has as its whole text. */
const missing = (frame, names) =>
  frame.evaluate((wanted) => {
    const all = [...document.querySelectorAll("body *")];
    // A name that is cut has all of it as its title.
    const texts = new Set(all.flatMap((element) => [element.textContent, element.title]));
    return wanted.filter((name) => !texts.has(name));
  }, names);

/** Which of the names stand in no text at all: for sentences. */
const unsaid = (frame, selector, names) =>
  frame.evaluate(
    ([where, wanted]) => {
      const said = [...document.querySelectorAll(where)].map((element) => element.textContent).join("\n");
      return wanted.filter((name) => !said.includes(name));
    },
    [selector, names],
  );

/** The titles of tooltips over the middle of each element. */
async function tips(page, frame, selector, title) {
  const found = [];
  for (const element of await frame.$$(selector)) {
    await element.scrollIntoViewIfNeeded();
    const box = await element.boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + Math.min(box.height, 20) / 2);
    await idle(frame);
    found.push(...(await text(frame, title)));
  }
  await page.mouse.move(2, 2);
  return found;
}

/** Every download of the menu: the name of its file, words of pictures whose beginning is cut off, and foreign ones. */
async function downloads(page, frame) {
  await click(frame, ".download > button");
  const labels = (await text(frame, ".menu button")).filter((label) => !label.startsWith("Copy"));
  await press(frame, "Escape");
  const [names, cut, foreign] = [[], [], []];
  for (let at = 0; at < labels.length; at++) {
    await click(frame, ".download > button");
    const waiting = page.waitForEvent("download");
    await frame.locator(".menu button:not(:has-text('Copy the picture'))").nth(at).click();
    const download = await waiting;
    names.push(download.suggestedFilename());
    if (!names.at(-1).endsWith(".svg")) continue;
    const svg = await readFile(await download.path(), "utf8");
    cut.push(...Array.from(svg.matchAll(/>(…[^<]*)</g), ([, word]) => word));
    foreign.push(...Array.from(svg.matchAll(/<text [^>]*>[^<]*[\u0590-\u08ff][^<]*</g), ([text]) => text));
  }
  return { labels, names, cut, foreign };
}

const asTable = (frame) => click(frame, "button[aria-label^='View'][aria-label$='as a table']");

const titles = (frame, selector) => frame.$$eval(selector, (all) => all.map(({ title }) => title));

/** The list of findings. */
async function inFindings(frame, { runs }) {
  const told = await frame.$$eval(".finding-run > span[title]", (names) => names.map(({ title }) => title));
  return { runs: runs.filter((run) => !told.includes(run)), told, texts: await text(frame, ".finding .finding-text") };
}

/** The Network view and what lies beside it. */
async function inNetwork(page, frame, { runs, layers, note }) {
  const found = { runs: await missing(frame, runs), labels: await text(frame, ".layer-name bdi") };
  found.spaces = await frame.$$eval(".path .name", (all) =>
    all.filter((one) => one.innerText !== one.textContent).map((one) => one.textContent),
  );
  found.titles = await frame.$$eval(".layer-name", (all) => all.map((one) => one.title));
  const column = await (await frame.$(".run-column")).boundingBox();
  found.tips = [];
  for (const name of await frame.$$(".net-name")) {
    const box = await name.boundingBox();
    await page.mouse.move(column.x + 30, box.y + box.height / 2);
    await idle(frame);
    found.tips.push(...(await text(frame, ".tip-title")));
  }
  found.tipRun = await text(frame, ".tip-run bdi");
  await page.mouse.move(2, 2);
  found.notes = await unsaid(frame, ".notes li", [...runs.map((run) => `${run}: ${note}`)]);
  await asTable(frame);
  found.table = await missing(frame, [...runs, ...layers]);
  await click(frame, "button[aria-label='Show the network as a picture']");
  found.downloads = await downloads(page, frame);
  return found;
}

/** The Layer view of one layer, with its inspector. */
async function inLayer(page, frame, { layer, runs }) {
  await goTo(page, frame, hashOf({ v: "layer", l: layer, r: runs[0], c: 1, s: 5 }));
  const found = {
    title: await text(frame, ".layer-title h1"),
    runs: await missing(frame, runs),
    tabs: await titles(frame, ".run-tabs .path"),
    barcodes: await titles(frame, ".barcode-names .path"),
    variables: await text(frame, ".layer-title option"),
    url: await frame.evaluate(() => document.documentElement.dataset.pastnetUrl),
    violation: await text(frame, ".violation"),
    label: await frame.getAttribute(".layer-panel", "aria-label"),
  };
  await asTable(frame);
  found.caption = await text(frame, ".layer-panel caption");
  await click(frame, ".layer-title button[aria-label$='as a picture']");
  return found;
}

/** The list of violations. */
async function inAudit(page, frame, { run, layers, cause }) {
  await goTo(page, frame, hashOf({ a: run }));
  return {
    names: await missing(frame, layers),
    run: await missing(frame, [run]),
    cause: await text(frame, ".audit tbody td:last-child"),
    wanted: cause,
  };
}

/** The Compare view, its pictures and its tables. */
async function inCompare(page, frame, { runs, layers }) {
  await goTo(page, frame, hashOf({ v: "compare", r: runs[0], r2: runs[1], l: layers[0], s: 5 }));
  const found = {
    names: await missing(frame, [...runs, ...layers]),
    choices: await frame.$$eval(".pair select", (all) => all.map((one) => [...one.options].map((o) => o.textContent))),
    tips: await tips(page, frame, ".matrix tbody tr:first-child td:nth-child(3)", ".tooltip *"),
  };
  for (const button of await frame.$$("main button[aria-label$='as a table']")) await button.click();
  await idle(frame);
  found.tables = await missing(frame, [...runs, ...layers]);
  found.downloads = await downloads(page, frame);
  for (const button of await frame.$$("main button[aria-label$='as a picture']")) await button.click();
  await idle(frame);
  return found;
}

/** The Function view, its pictures and its tables. */
async function inFunction(page, frame, { runs, layers, outputs, inputs }) {
  await goTo(page, frame, hashOf({ v: "function", r: runs[0], s: 5 }));
  const found = {
    names: await missing(frame, [...runs, ...layers, ...outputs]),
    inputs: await unsaid(frame, ".fn-probe li", inputs),
  };
  for (const button of await frame.$$("main button[aria-label$='as a table']")) await button.click();
  await idle(frame);
  found.tables = await unsaid(frame, ".table-scroll th", [...runs, ...layers, ...outputs]);
  for (const button of await frame.$$("main button[aria-label$='as a picture']")) await button.click();
  await idle(frame);
  return found;
}

/** Every view over a log of hostile names, and what they did to the page. */
export async function hostile({ base, newPage }, names) {
  const page = await newPage({ height: 1900, strict: true });
  const frame = await openTab(page, base);
  const findings = await inFindings(frame, names);
  await goTo(page, frame, NETWORK);
  const found = { findings, network: await inNetwork(page, frame, names), layers: [] };
  for (const layer of names.opened) found.layers.push(await inLayer(page, frame, { ...names, layer }));
  found.layerDownloads = await downloads(page, frame);
  found.audit = await inAudit(page, frame, { ...names, run: names.runs[0] });
  await goTo(page, frame, "");
  found.compare = await inCompare(page, frame, names);
  found.function = await inFunction(page, frame, names);
  found.elements = await frame.$$eval("*", (all) => [...new Set(all.map((one) => one.localName))]);
  found.polluted = await frame.evaluate(() => Object.keys(Object.prototype));
  return found;
}
