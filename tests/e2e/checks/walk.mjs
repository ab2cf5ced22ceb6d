// Addresses, Back and Forward.
import { idle, openTab } from "../../../frontend/scripts/browser.mjs";
import { click, elsewhere, hash, press, state } from "../visit.mjs";

/** A walk by pointer and keys from the view that comes first, Back all the way, and each address in another page. */
export async function walk({ base, newPage }, { layer }) {
  const page = await newPage();
  const frame = await openTab(page, base);
  const history = await page.evaluate(() => JSON.stringify(history.state));
  const stations = [];
  const keep = async (name) => {
    await page.waitForFunction(() => true);
    stations.push({ name, hash: await hash(page), state: await state(frame) });
  };
  const settled = async () => {
    // The address follows after a moment, so that dragging doesn't write it too often.
    const link = await frame.evaluate(() => document.documentElement.dataset.pastnetUrl ?? "");
    await page.waitForFunction((expected) => location.hash === expected, link);
  };
  await frame.click("h1"); // keys go to the frame that was clicked last
  await settled();
  await keep("findings");
  await click(frame, ".toolbar button:has-text('Network')");
  await settled();
  await keep("network");
  await press(frame, "ArrowLeft", "Shift+ArrowLeft");
  await settled();
  await keep("step");
  await click(frame, `.layer-name[title^=${JSON.stringify(`${layer}:`)}]`);
  await settled();
  await keep("layer");
  await press(frame, "ArrowDown", "ArrowDown");
  await click(frame, ".controls .button:has-text('State'):not(:has-text('Δ'))");
  await frame.selectOption(".sort", "index");
  await idle(frame);
  await settled();
  await keep("channel");
  const backs = [];
  await page.goBack();
  await frame.waitForSelector(".net");
  await idle(frame);
  backs.push({ hash: await hash(page), state: await state(frame) });
  await page.goForward();
  await frame.waitForSelector(".layer-view");
  await idle(frame);
  backs.push({ hash: await hash(page), state: await state(frame) });
  const anew = await elsewhere({ base, newPage }, stations, state);
  const after = await page.evaluate(() => JSON.stringify(history.state));
  return { stations, backs, afresh: anew, history, after };
}
