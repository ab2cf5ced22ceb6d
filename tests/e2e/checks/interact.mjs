// Pointer and keys.
import { idle } from "../../../frontend/scripts/browser.mjs";
import { click, hash, NETWORK, openFrame, painted, press, text } from "../visit.mjs";

/** Filters, ticks, zoom, threshold, drill and badge. */
export async function interact({ base, newPage }) {
  const page = await newPage();
  const frame = await openFrame(page, base, { hash: NETWORK });
  const found = {};
  const names = () => text(frame, ".net-name .plain bdi");
  const heads = () => text(frame, ".run-head-name .path");
  await frame.fill("#layer-filter", "conv");
  await idle(frame);
  found.filtered = await names();
  await frame.fill("#layer-filter", "conv(");
  await idle(frame);
  found.wrong = {
    names: await names(),
    invalid: await frame.getAttribute("#layer-filter", "aria-invalid"),
    decoration: await frame.$eval("#layer-filter", (e) => getComputedStyle(e).textDecorationLine),
  };
  await frame.fill("#layer-filter", "");
  await frame.fill("#run-filter", "^pruned$");
  await idle(frame);
  found.runs = await heads();
  await frame.fill("#run-filter", "");
  await frame.$eval("#run-filter", (e) => e.blur());
  await click(frame, ".runs input");
  found.unticked = await heads();
  await click(frame, ".runs input");
  const column = await (await frame.$(".run-column")).boundingBox();
  const y = column.y + 30;
  const legend = () => frame.$eval("[aria-label='Channel states'] .sub", (one) => one.textContent);
  await page.mouse.move(column.x + column.width * 0.5, y);
  await idle(frame);
  found.hover = {
    pill: await text(frame, ".pill"),
    tip: await text(frame, ".tooltip .tip-run"),
    // One picture of lines, as wide as all columns but the last.
    cross: await frame.$eval(".crosshairs", (all) => {
      const column = Number.parseFloat(getComputedStyle(all).backgroundSize);
      return { lines: Math.ceil(all.clientWidth / column), x: new DOMMatrix(getComputedStyle(all).transform).e };
    }),
    legend: await legend(),
  };
  const second = await (await frame.$$(".run-column"))[1].boundingBox();
  await page.mouse.move(second.x + second.width * 0.5, y);
  await idle(frame);
  found.hover.beside = await legend();
  await page.mouse.move(column.x + column.width * 0.25, y);
  await page.mouse.down();
  await page.mouse.move(column.x + column.width * 0.5, y, { steps: 4 });
  // One box that repeats: as often as there are columns, each from a quarter of it to its half.
  found.box = await frame.$eval(".zoom-box", (all) => {
    const column = document.querySelector(".run-column").getBoundingClientRect();
    const { left, width } = all.getBoundingClientRect();
    const names = ["background-size", "--from", "--to"];
    const [pitch, from, to] = names.map((name) => Number.parseFloat(all.style.getPropertyValue(name)));
    return {
      boxes: Math.ceil(width / pitch),
      from: (left + from - column.left) / column.width,
      share: (to - from) / column.width,
    };
  });
  await page.mouse.up();
  await idle(frame);
  found.zoomed = await text(frame, ".run-head .tick");
  found.zoomStep = (await hash(page)).includes("p.pastnet.s=");
  // Keys go to the frame that was clicked last: the drag was in it.
  found.inside = { range: await text(frame, ".zoom-chip"), pills: [] };
  await page.mouse.move(2, 2);
  for (const keys of [["Home"], ["ArrowLeft"], Array(20).fill("ArrowRight"), ["End"]]) {
    await press(frame, ...keys);
    found.inside.pills.push(...(await text(frame, ".run-head .pill")));
  }
  await press(frame, "0");
  found.reset = await text(frame, ".run-head .tick");
  // A browser that takes a finger's drag to scroll sends no end of it, but that it is cancelled.
  await page.mouse.move(column.x + 20, y);
  await page.mouse.down();
  await page.mouse.move(column.x + 60, y);
  const boxes = () => frame.$eval(".zoom-box", (all) => getComputedStyle(all).opacity);
  found.cancelled = [await boxes()];
  await frame.evaluate(() =>
    document.querySelector(".run-column").dispatchEvent(new PointerEvent("pointercancel", { bubbles: true })),
  );
  await page.mouse.move(column.x + 90, y);
  await painted(frame);
  found.cancelled.push(await boxes());
  await page.mouse.up();
  await idle(frame);
  found.cancelled.push(await text(frame, ".zoom-chip"));
  await page.mouse.dblclick(column.x + 20, column.y + 62 + 30);
  await frame.waitForSelector(".layer-view");
  await idle(frame);
  found.drilled = await text(frame, ".layer-title h1");
  await press(frame, "Escape");
  found.up = (await frame.$$(".net")).length;
  await click(frame, ".net-name .badge");
  await frame.waitForSelector(".violation");
  await idle(frame);
  found.badge = {
    title: await text(frame, ".inspector h2"),
    violation: await text(frame, ".violation"),
    pill: await text(frame, ".heat .pill"),
  };
  await frame.focus("#threshold");
  for (let i = 0; i < 10; i++) await frame.press("#threshold", "ArrowRight");
  await frame.waitForFunction(() => document.documentElement.dataset.pastnetUrl?.includes("p.pastnet.th="));
  await idle(frame);
  found.threshold = await frame.getAttribute("#threshold", "aria-valuetext");
  return found;
}
