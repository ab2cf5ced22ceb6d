// What the page looks like: each view in each theme.
import { axe, openTab } from "../../../frontend/scripts/browser.mjs";
import { click, goTo, hashOf, NETWORK, press } from "../visit.mjs";

/** What axe finds in a view, and the frame's background; how many colours each canvas has. */
async function plain(frame) {
  return {
    axe: await axe(frame),
    background: await frame.evaluate(() => getComputedStyle(document.documentElement).backgroundColor),
    canvases: await frame.$$eval("canvas", (all) =>
      all.map((canvas) => {
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        const colours = new Set(new Uint32Array(data.buffer)).size;
        return { role: canvas.getAttribute("role"), label: canvas.getAttribute("aria-label"), colours };
      }),
    ),
  };
}

/** The same, and what axe finds in the view's table and its keys. */
async function looks(frame, name, table) {
  const seen = await plain(frame);
  await click(frame, table);
  const found = { [name]: seen, [`${name} table`]: { axe: await axe(frame) } };
  await press(frame, "?");
  found[`${name} keys`] = { axe: await axe(frame) };
  await frame.press("dialog[open]", "Escape");
  return found;
}

/** Findings, network and layer in a theme, without eval; those of the other views are beside their tests. */
export async function look({ base, newPage }, { layer, run, theme }) {
  const page = await newPage({ strict: true });
  const frame = await openTab(page, base, { dark: theme === "dark" });
  const found = { findings: await plain(frame) };
  await goTo(page, frame, NETWORK);
  Object.assign(found, await looks(frame, "network", ".net-title .button.small"));
  await goTo(page, frame, hashOf({ v: "layer", l: layer, r: run, c: 0 }));
  return Object.assign(found, await looks(frame, "layer", ".layer-title .button.small"));
}
