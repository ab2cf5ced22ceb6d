// What the two screenshot scripts share: their options, a page of a given size, and a picture after keys, a click and a hover.
import { parseArgs } from "node:util";
import { idle, launch } from "../scripts/browser.mjs";

const OPTIONS = {
  dark: { type: "boolean" },
  size: { type: "string", default: "1440x900" },
  hash: { type: "string", default: "" },
  press: { type: "string" },
  click: { type: "string" },
  hover: { type: "string" },
};

/** Opens the page with `open(page, base, values)`, which gives its frame, acts, and writes the picture. */
export async function takePicture(open, options = {}) {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { ...OPTIONS, ...options } });
  const [base, out] = positionals;
  const [width, height] = values.size.split("x").map(Number);
  const browser = await launch();
  const page = await browser.newPage({ viewport: { width, height } });
  page.on("console", (message) => console.log(message.type(), message.text()));
  page.on("pageerror", (error) => console.log("error", error.stack));
  const frame = await open(page, base, values);
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
}
