// Time and bytes from the click on a tab's name: node paint.mjs ROUNDS THEIRS OURS. Prints JSON.
import { launch } from "../../frontend/scripts/browser.mjs";
import { meter, quiet } from "./meter.mjs";

const [rounds, ...bases] = process.argv.slice(2);
const TABS = { theirs: ["Histograms", bases[0]], ours: ["PastNet", bases[1]] };

/** Runs in TensorBoard's page: milliseconds until something is drawn, and until all of the screen is. */
async function clicked(name) {
  const inside = (node, tag) => [
    ...node.querySelectorAll(tag),
    ...[...node.querySelectorAll("*")].flatMap((one) => (one.shadowRoot ? inside(one.shadowRoot, tag) : [])),
  ];
  const onScreen = (one) => one.getBoundingClientRect().top < innerHeight;
  const theirs = () => {
    const cards = inside(document, "vz-histogram-timeseries").filter(onScreen);
    const drawn = cards.filter((card) => card.shadowRoot.querySelector("path.outline"));
    return { first: drawn.length > 0, all: cards.length > 0 && drawn.length === cards.length };
  };
  const ours = () => {
    const page = document.querySelector('iframe[src*="name=pastnet"]')?.contentDocument;
    const canvas = page?.querySelector("canvas.strips");
    const columns = [...(page?.querySelectorAll(".strips-label") ?? [])];
    const drawn = columns.filter((column) => {
      const x = column.parentElement.offsetLeft - canvas.offsetLeft + column.clientWidth / 4;
      return canvas.getContext("2d").getImageData(x, 0, 1, canvas.height).data.some((value) => value > 0);
    });
    const idle = page?.documentElement?.dataset.pastnetIdle === "true";
    return { first: drawn.length > 0, all: idle && drawn.length > 0 && drawn.length === columns.length };
  };
  const look = name === "PastNet" ? ours : theirs;
  const tab = [...document.querySelectorAll(".plugin-name")].find(
    (one) => one.textContent.trim().toLowerCase() === name.toLowerCase(),
  );
  const start = performance.now();
  tab.click();
  const found = {};
  while (!found.all) {
    if (performance.now() - start > 120_000) throw new Error(`${name} isn't drawn after two minutes`);
    await new Promise(requestAnimationFrame);
    const now = look();
    // The frame in which it is drawn is on the screen when the next one begins.
    await new Promise(requestAnimationFrame);
    if (now.first) found.first ??= performance.now() - start;
    if (now.all) found.all = performance.now() - start;
  }
  return found;
}

async function once(browser, [name, base]) {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  const seen = await meter(page);
  await page.goto(`${base}/#graphs&p.pastnet.v=network`); // PastNet's pictures, not its findings
  await page.getByRole("tab", { name }).waitFor();
  await quiet(page, seen);
  const before = { ...seen };
  const times = await page.evaluate(clicked, name);
  await quiet(page, seen);
  await page.close();
  return { ...times, bytes: seen.plugin - before.plugin, requests: seen.requests - before.requests };
}

const found = { theirs: [], ours: [] };
const browser = await launch();
for (let round = 0; round <= Number(rounds); round++) {
  for (const [tab, where] of round % 2 ? Object.entries(TABS) : Object.entries(TABS).reverse()) {
    const one = await once(browser, where);
    if (round > 0) found[tab].push(one); // the first warms the server
  }
}
await browser.close();
console.log(JSON.stringify(found));
