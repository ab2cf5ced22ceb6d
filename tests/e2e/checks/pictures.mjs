// Pictures that are compared with golden ones.
import { glyphs as glyphFile } from "../../../frontend/gallery/glyphs.mjs";
import { idle } from "../../../frontend/scripts/browser.mjs";
import { useBoxes } from "../font.mjs";
import { blocksOf, decoded } from "../pixels.mjs";
import { goTo, openFrame, painted } from "../visit.mjs";

/** No server is asked. */
const GLYPHS = "http://glyphs.test/";

/** Every glyph of the gallery in both themes: its kind, and its pixels at device ratios 1 and 2. */
export async function glyphs({ newPage }) {
  const found = {};
  for (const theme of ["light", "dark"]) {
    const page = await newPage();
    await page.route(`${GLYPHS}**`, async (route) => {
      const found = await glyphFile(new URL(route.request().url()).pathname.slice(1));
      await route.fulfill(found ? { contentType: found[0], body: Buffer.from(found[1]) } : { status: 204 });
    });
    await page.goto(`${GLYPHS}?${theme}`);
    await idle(page);
    for (const figure of await page.$$("figure")) {
      const { glyph, kind } = await figure.evaluate((element) => ({ ...element.dataset }));
      const sizes = [];
      for (const part of await figure.$$(".sizes > *")) {
        const canvas = await part.evaluate((element) => element.toDataURL?.().split(",")[1] ?? null);
        sizes.push(await decoded(page, canvas ? Buffer.from(canvas, "base64") : await part.screenshot()));
      }
      found[`${glyph}.${theme}`] = { kind, sizes };
    }
  }
  return found;
}

const BLOCK = 16;

/** In the light TensorBoard's bar throws its shadow on our frame. */
const BAR =
  "body:not(.dark-mode)::before { content: ''; position: fixed; inset: 0 0 auto; height: 64px; z-index: 1; " +
  "box-shadow: 0 2px 4px -1px #0003, 0 4px 5px #0002, 0 1px 10px #0002 }";

/**
 * Pictures of the tab as the mean colours of blocks. A shot is an address, a size, a theme and a style to add, by
 * name; `swap` puts one text of the bundle in place of another, to see what a comparison finds.
 */
export async function views({ base, newPage }, { shots, swap, folder }) {
  const page = await newPage();
  let swapped = false;
  if (swap) {
    await page.route("**/*.js", async (route) => {
      const response = await route.fetch();
      const body = await response.text();
      swapped ||= body.includes(swap[0]);
      await route.fulfill({ response, body: body.replaceAll(...swap) });
    });
  }
  const frame = await openFrame(page, base, { hash: Object.values(shots)[0].hash });
  await page.addStyleTag({ content: BAR });
  await useBoxes(frame);
  const added = await frame.addStyleTag({ content: " " });
  const element = await frame.frameElement();
  const found = {};
  for (const [name, { hash, size, theme, style = "" }] of Object.entries(shots)) {
    await goTo(page, frame, hash);
    await page.setViewportSize({ width: size[0], height: size[1] });
    await page.evaluate((dark) => document.body.classList.toggle("dark-mode", dark), theme === "dark");
    await added.evaluate((tag, content) => {
      tag.textContent = content;
    }, style);
    await painted(frame);
    const png = await element.screenshot(folder ? { path: `${folder}/${name}.png` } : {});
    found[name] = await blocksOf(page, png, BLOCK);
  }
  if (swap && !swapped) throw new Error(`no ${swap[0]} in the page`);
  return found;
}
