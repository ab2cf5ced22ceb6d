// What fails, and what isn't there yet.
import { axe, idle } from "../../../frontend/scripts/browser.mjs";
import { click, NETWORK, openFrame, text } from "../visit.mjs";

/** A route that fails, and Retry. */
export async function failure({ base, seen, newPage }) {
  const page = await newPage();
  let broken = true;
  await page.route("**/overview?*", (route) =>
    broken
      ? route.fulfill({
          status: 500,
          contentType: "application/json",
          body: '{"schema":2,"error":{"code":"internal","message":"Could not read the run. <b>Try</b> again."}}',
        })
      : route.continue(),
  );
  const frame = await openFrame(page, base, { hash: NETWORK });
  const alerts = await text(frame, "[role=alert] p");
  const page_ = { names: await text(frame, ".net-name .plain bdi"), bold: (await frame.$$("[role=alert] b")).length };
  broken = false;
  seen.errors.length = 0;
  await click(frame, "[role=alert] button");
  await page.mouse.move(2, 2);
  await idle(frame);
  return { alerts, ...page_, after: await text(frame, "[role=alert] p"), heads: await text(frame, ".run-head .two") };
}

/** The sign of waiting while a layer is on its way, and what is there of it before and afterwards. */
export async function waiting({ base, newPage }) {
  const page = await newPage();
  const frame = await openFrame(page, base, { hash: NETWORK });
  const signs = async () => (await frame.$$(".progress")).length;
  const before = await signs();
  let answer = () => {};
  const held = new Promise((done) => {
    answer = done;
  });
  await page.route("**/layer?*", async (route) => {
    await held;
    await route.continue();
  });
  await frame.click(".layer-name");
  await frame.waitForSelector(".progress", { state: "attached" });
  const meanwhile = { pictures: (await frame.$$(".heat-plot")).length, signs: await signs() };
  answer();
  await idle(frame);
  return { before, meanwhile, after: { pictures: (await frame.$$(".heat-plot")).length, signs: await signs() } };
}

/** The tab of a log directory without our data. */
export async function empty({ base, newPage }) {
  const page = await newPage();
  const frame = await openFrame(page, base);
  const found = { text: await text(frame, ".empty"), lines: [] };
  const names = await text(frame, ".empty .joined button");
  for (const [at] of names.entries()) {
    await frame.locator(".empty .joined button").nth(at).click();
    found.lines.push(...(await text(frame, "pre")));
  }
  return { ...found, axe: await axe(frame) };
}
