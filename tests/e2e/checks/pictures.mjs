// Pictures that are compared with golden ones.
import { idle } from "../../../frontend/scripts/browser.mjs";
import { decoded } from "../pixels.mjs";

/** Every glyph of the gallery in both themes: its kind, and its pixels at device ratios 1 and 2. */
export async function glyphs({ base, newPage }) {
  const found = {};
  for (const theme of ["light", "dark"]) {
    const page = await newPage();
    await page.goto(`${base}/glyphs/?${theme}`);
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
