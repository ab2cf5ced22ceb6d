// Screenshots of the page inside a running TensorBoard: node gallery/board.mjs http://127.0.0.1:6006 OUT.png [--dark] [--size 1440x900]
// [--hash '&p.pastnet.v=layer'] [--press keys,comma,separated] [--click selector] [--hover x,y]
// `python -m tests.e2e.made_logs network FOLDER` writes a log for it.
import { parseArgs } from "node:util";
import { idle, launch, openTab } from "../scripts/browser.mjs";

const OPTIONS = {
  dark: { type: "boolean" },
  size: { type: "string", default: "1440x900" },
  hash: { type: "string", default: "" },
  press: { type: "string" },
  click: { type: "string" },
  hover: { type: "string" },
};

const { values, positionals } = parseArgs({ allowPositionals: true, options: OPTIONS });
const [base, out] = positionals;
const [width, height] = values.size.split("x").map(Number);
const browser = await launch();
const page = await browser.newPage({ viewport: { width, height } });
page.on("console", (message) => console.log(message.type(), message.text()));
page.on("pageerror", (error) => console.log("error", error.stack));
const frame = await openTab(page, base, { hash: values.hash, dark: values.dark });
for (const key of values.press?.split(",") ?? []) {
  await frame.press("body", key);
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
