// Takes the pictures of the docs from a running demo:
//   python3 dev.py demo
//   CHROMIUM=/usr/bin/chromium node docs/images/take.mjs http://localhost:6006 [names]
import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { idle, launch, openTab } from "../../frontend/scripts/browser.mjs";
import { shrink } from "./shrink.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const [base = "http://localhost:6006", ...names] = process.argv.slice(2);

/** What stands behind #pastnet; in which themes, light and dark if nothing is said; keys pressed then. */
const PICTURES = {
  findings: { state: {} },
  network: { state: { v: "network", s: 1150 } },
  layer: { state: { v: "layer", l: "block2/conv2", r: "leak_weight_decay", c: 3, s: 1150 } },
  compare: { state: { v: "compare", l: "block2/conv2", r: "prune_channels_s0", r2: "prune_channels_s1", s: 1150 } },
  function: { state: { v: "function", r: "freeze_steps", s: 700 } },
  violations: { state: { v: "network", r: "leak_weight_decay" }, themes: ["light"], keys: ["v"] },
  annotated: { state: { v: "network", s: 1150 }, notes: true },
  versus: { state: { v: "network", s: 700, b: "dense", vs: 1 }, themes: ["light"] },
};

/** What the columns of the demo's runs show, written below them. */
const NOTES = {
  dense: "learns, then is quiet",
  freeze_steps: "frozen, one layer after another",
  leak_weight_decay: "frozen channels that move: weight decay leaks",
  prune_channels_s0: "pruned in steps, …",
  prune_channels_s1: "… with another seed",
};
const HEIGHT = 1000; // with room for them

/** Writes the notes below the columns of the Network view; the part of the page that is to be shown. */
const annotate = async (page, frame, dark) => {
  const box = async (selector) => frame.locator(selector).first().boundingBox();
  const panel = await box(".panel.network");
  const strips = await box(".net-body");
  const columns = await frame.locator(".run-head").all();
  const places = await Promise.all(columns.map((column) => column.boundingBox()));
  const bottom = strips.y + strips.height;
  await page.evaluate(
    ([places, texts, bottom, colour]) => {
      for (const [at, { x, width }] of places.entries()) {
        const note = document.body.appendChild(document.createElement("div"));
        note.textContent = texts[at];
        note.style.cssText = `position:fixed; left:${x}px; top:${bottom + 6}px; width:${width - 14}px; z-index:9;
          font: italic 15px/1.25 sans-serif; color:${colour}; border-top:2px solid ${colour}; padding-top:5px`;
      }
    },
    [places, Object.values(NOTES), bottom, dark ? "#ffb74d" : "#bf360c"],
  );
  const right = Math.max(...places.map(({ x, width }) => x + width));
  return { x: panel.x, y: panel.y, width: right - panel.x + 8, height: bottom + 76 - panel.y };
};

const browser = await launch();
for (const [name, { state, themes = ["light", "dark"], keys = [], notes = false }] of Object.entries(PICTURES)) {
  if (names.length > 0 && !names.includes(name)) continue;
  const hash = Object.entries(state).map(([key, value]) => `&p.pastnet.${key}=${encodeURIComponent(value)}`);
  for (const theme of themes) {
    const page = await browser.newPage({ viewport: { width: 1440, height: notes ? HEIGHT : 900 } });
    const frame = await openTab(page, base, { hash: hash.join(""), dark: theme === "dark" });
    for (const key of keys) {
      await page.keyboard.press(key);
      await idle(frame);
    }
    const clip = notes ? await annotate(page, frame, theme === "dark") : undefined;
    const png = await page.screenshot({ clip });
    await page.goto("about:blank"); // TensorBoard's page may not fetch data:
    await writeFile(join(here, `${name}-${theme}.png`), await shrink(page, png));
    await page.close();
  }
}
await browser.close();
