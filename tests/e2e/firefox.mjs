// What Firefox shows, told as one line of JSON: the glyphs of the gallery, and of each view the errors and the canvases
// that hold a picture. playwright-core needs a Firefox of its own making; this drives the installed one.
// Arguments: the path of Firefox, the address of TensorBoard, the views, a folder for screenshots or "".
import { createServer } from "node:http";
import { glyphs } from "../../frontend/gallery/glyphs.mjs";
import puppeteer from "../../frontend/node_modules/puppeteer-core/lib/puppeteer/puppeteer-core.js";
import { decoded } from "./pixels.mjs";
import { changeHash } from "./visit.mjs";

const [executablePath, base, views, folder] = process.argv.slice(2);
const browser = await puppeteer.launch({ browser: "firefox", executablePath, headless: true });
const errors = [];

async function newPage() {
  const page = await browser.newPage();
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(error.message));
  return page;
}

async function drawnGlyphs() {
  const server = createServer(async (request, response) => {
    const found = await glyphs(new URL(request.url, base).pathname.slice(1));
    response.writeHead(found ? 200 : 204, found ? { "Content-Type": found[0] } : {}).end(found?.[1]);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const found = {};
  for (const theme of ["light", "dark"]) {
    const page = await newPage();
    await page.goto(`http://127.0.0.1:${server.address().port}/?${theme}`);
    await page.waitForSelector("figure canvas");
    for (const figure of await page.$$("figure")) {
      const { glyph, kind } = await figure.evaluate((element) => ({ ...element.dataset }));
      const sizes = [];
      for (const part of await figure.$$(".sizes > *")) {
        const canvas = await part.evaluate((element) => element.toDataURL?.().split(",")[1] ?? null);
        if (canvas) sizes.push(await decoded(page, Buffer.from(canvas, "base64")));
      }
      if (sizes.length > 0) found[`${glyph}.${theme}`] = { kind, sizes };
    }
    await page.close();
  }
  server.close();
  return found;
}

/** The frame of the tab, once it shows a panel; TensorBoard may put another in its place on the way. */
async function tabFrame(page) {
  for (let look = 0; look < 240; look++) {
    for (const frame of page.frames()) {
      if (frame === page.mainFrame()) continue;
      if (await frame.evaluate(() => document.querySelector("main .panel") !== null).catch(() => false)) return frame;
    }
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  throw new Error(`no panel in ${page.url()}`);
}

/** How many canvases of a view there are, and how many of them have anything on them. */
async function painted(page, frame, view) {
  await changeHash(page, addressOf(view));
  await frame.waitForFunction(() => document.documentElement.dataset.pastnetIdle === "true", { timeout: 180_000 });
  if (folder) await page.screenshot({ path: `${folder}/firefox-${view}.png` });
  return frame.evaluate(() => {
    const all = [...document.querySelectorAll("main canvas")].filter(({ width, height }) => width * height > 0);
    const coloured = all.filter((canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const pixels = new Uint32Array(data.buffer);
      return pixels.some((pixel) => pixel !== 0);
    });
    return { canvases: all.length, painted: coloured.length, text: document.querySelector("main").textContent };
  });
}

const addressOf = (view) => `#pastnet&p.pastnet.v=${view}`;

/** Each view of one page: Firefox takes much longer to open TensorBoard's than to show another view of ours. */
async function allPainted(names) {
  const page = await newPage();
  // Firefox ESR doesn't know all that puppeteer asks for besides the size.
  await page.setViewport({ width: 1280, height: 800 }).catch((error) => {
    if (!error.message.includes("unknown command")) throw error;
  });
  await page.goto(`${base}/${addressOf(names[0])}`);
  const frame = await tabFrame(page);
  const found = {};
  for (const view of names) found[view] = await painted(page, frame, view);
  await page.close();
  return found;
}

const shown = await allPainted(views.split(","));
const drawn = await drawnGlyphs();
console.log(JSON.stringify({ errors, shown, drawn }));
await browser.close();
