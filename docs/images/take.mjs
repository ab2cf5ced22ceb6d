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
  versus: { state: { v: "network", s: 700, b: "dense", vs: 1 }, themes: ["light"] },
};

const browser = await launch();
for (const [name, { state, themes = ["light", "dark"], keys = [] }] of Object.entries(PICTURES)) {
  if (names.length > 0 && !names.includes(name)) continue;
  const hash = Object.entries(state).map(([key, value]) => `&p.pastnet.${key}=${encodeURIComponent(value)}`);
  for (const theme of themes) {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    const frame = await openTab(page, base, { hash: hash.join(""), dark: theme === "dark" });
    for (const key of keys) {
      await page.keyboard.press(key);
      await idle(frame);
    }
    const png = await page.screenshot();
    await page.goto("about:blank"); // TensorBoard's page may not fetch data:
    await writeFile(join(here, `${name}-${theme}.png`), await shrink(page, png));
    await page.close();
  }
}
await browser.close();
