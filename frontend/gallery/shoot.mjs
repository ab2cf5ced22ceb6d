// Screenshots of the gallery: node gallery/shoot.mjs BASE OUT.png [--dark] [--size 1440x900] [--scenario mock] [--hash '&p.pastnet.v=layer']
// [--press keys,comma,separated] [--hover x,y]
import { parseArgs } from "node:util";
import { idle, launch } from "../scripts/browser.mjs";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    dark: { type: "boolean" },
    size: { type: "string", default: "1440x900" },
    scenario: { type: "string", default: "mock" },
    hash: { type: "string", default: "" },
    press: { type: "string" },
    hover: { type: "string" },
    click: { type: "string" },
  },
});
const [base, out] = positionals;
const [width, height] = values.size.split("x").map(Number);
const browser = await launch();
const page = await browser.newPage({ viewport: { width, height } });
page.on("console", (message) => console.log(message.type(), message.text()));
page.on("pageerror", (error) => console.log("error", error.stack));
const t0 = performance.now();
await page.goto(`${base}/${values.scenario}/${values.dark ? "?dark" : ""}#pastnet${values.hash}`);
const frame = await (await page.waitForSelector("iframe")).contentFrame();
await idle(frame);
console.log(`idle after ${(performance.now() - t0).toFixed(0)} ms`);
for (const key of values.press?.split(",") ?? []) {
  await page.keyboard.press(key);
  await idle(frame);
}
if (values.click) {
  await frame.click(values.click);
  await idle(frame);
}
if (values.hover) {
  const [x, y] = values.hover.split(",").map(Number);
  await page.mouse.move(x, y);
  await page.mouse.move(x + 1, y);
  await idle(frame);
}
await page.screenshot({ path: out });
await browser.close();
