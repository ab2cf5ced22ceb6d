// The page and its data in one file, opened from disk.
import { idle } from "../../../frontend/scripts/browser.mjs";
import { hashOf, text } from "../visit.mjs";

/** What each view shows, and every address that was asked for on the way. */
export async function alone({ newPage }, { file, views }) {
  const page = await newPage();
  const asked = [];
  page.on("request", (request) => asked.push(request.url().split("#")[0]));
  const shown = {};
  for (const [name, fields] of Object.entries(views)) {
    await page.goto("about:blank");
    await page.goto(`file://${file}#pastnet${hashOf(fields)}`);
    await idle(page.mainFrame());
    const canvases = await page.$$eval("main canvas", (all) => all.filter(({ width }) => width > 0).length);
    shown[name] = {
      canvases,
      alerts: await text(page, "[role=alert]"),
      heads: await text(page, ".run-head .two"),
      findings: await text(page, ".finding .finding-text"),
      title: (await text(page, ".layer-title h1, .inspector h2")).join(" "),
    };
  }
  return { shown, asked: asked.filter((url) => !url.startsWith("data:") && url !== "about:blank") };
}
