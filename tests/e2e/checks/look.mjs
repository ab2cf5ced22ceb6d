// What the page looks like: each view in each theme.
import { axe, openTab } from "../../../frontend/scripts/browser.mjs";
import { click, press } from "../visit.mjs";

/** Each view in each theme: what axe finds, and whether the frame has the theme's background. */
export async function look({ base, newPage }, { layer, run, shots }) {
  const found = {};
  for (const dark of [false, true]) {
    for (const view of ["network", "layer"]) {
      const page = await newPage({ strict: true });
      const at =
        view === "layer"
          ? `&p.pastnet.v=layer&p.pastnet.l=${encodeURIComponent(layer)}&p.pastnet.r=${encodeURIComponent(run)}&p.pastnet.c=0`
          : "";
      const frame = await openTab(page, base, { dark, hash: at });
      const name = `${view} ${dark ? "dark" : "light"}`;
      found[name] = {
        axe: await axe(frame),
        background: await frame.evaluate(() => getComputedStyle(document.documentElement).backgroundColor),
        canvases: await frame.$$eval("canvas", (all) =>
          all.map((canvas) => ({
            role: canvas.getAttribute("role"),
            label: canvas.getAttribute("aria-label"),
            colours: new Set(
              new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer),
            ).size,
          })),
        ),
      };
      if (shots) await page.screenshot({ path: `${shots}/${name.replace(" ", "-")}.png` });
      await click(frame, ".net-title .button.small, .layer-title .button.small");
      found[`${name} table`] = { axe: await axe(frame) };
      await press(frame, "?");
      found[`${name} keys`] = { axe: await axe(frame) };
      await page.close();
    }
  }
  return found;
}
