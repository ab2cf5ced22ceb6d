// Takes the README's pictures from a running demo:
//   python3 dev.py demo
//   CHROMIUM=/usr/bin/chromium node docs/images/take.mjs http://localhost:6006
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const require = createRequire(join(here, "../../frontend/package.json"));
const { chromium } = require("playwright-core");

const [address = "http://localhost:6006"] = process.argv.slice(2);
const VIEWS = {
  network: "#pastnet&p.pastnet.s=1150",
  layer: "#pastnet&p.pastnet.v=layer&p.pastnet.l=block2%2Fconv2&p.pastnet.r=leak_weight_decay&p.pastnet.c=3&p.pastnet.s=1150",
};

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ["--no-sandbox"],
});
for (const colorScheme of ["light", "dark"]) {
  const page = await browser.newPage({ colorScheme, viewport: { width: 1440, height: 900 } });
  for (const [view, hash] of Object.entries(VIEWS)) {
    await page.goto("about:blank");
    await page.goto(`${address}/${hash}`);
    const frame = page.frameLocator("iframe");
    await frame.locator("canvas").first().waitFor({ timeout: 30000 });
    await page.waitForTimeout(2500);
    await page.screenshot({ path: join(here, `${view}-${colorScheme}.png`) });
  }
  await page.close();
}
await browser.close();
