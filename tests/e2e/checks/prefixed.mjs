// The page at other addresses than TensorBoard's own: below a prefix, of an experiment, behind a proxy.
import { openTab } from "../../../frontend/scripts/browser.mjs";
import { goTo, hashOf, text } from "../visit.mjs";

/** Goes through the views; all that the page asks for, and what it is answered. */
export async function prefixed({ base, newPage }, { layer }) {
  const page = await newPage();
  const answers = [];
  page.on("response", (answer) => answers.push([answer.url(), answer.status()]));
  const frame = await openTab(page, base, { hash: hashOf({ v: "layer", l: layer, c: 0 }) });
  for (const view of ["findings", "network", "compare", "function"]) await goTo(page, frame, hashOf({ v: view }));
  return { answers, alerts: await text(frame, "[role=alert]"), link: await page.evaluate(() => location.href) };
}
