// Narrow windows and long names: what is cut off, and by what.
import { idle } from "../../../frontend/scripts/browser.mjs";
import { atWidths, click, goTo, hashOf, openFrame, press, text } from "../visit.mjs";

/** In the page: how far an element is outside of the window, in pixels; 0 where it is inside. */
const outside = (frame, selector) =>
  frame.$eval(selector, (element) => {
    const { left, top, right, bottom } = element.getBoundingClientRect();
    return Math.max(0, -left, -top, right - innerWidth, bottom - innerHeight);
  });

/** The tooltip over places of the pictures of a view, in the corners of a small window. */
export async function tooltips({ base, newPage }, { hash, width, height }) {
  const page = await newPage({ width, height });
  const frame = await openFrame(page, base, { hash: hashOf(hash) });
  const { x, y, width: wide, height: tall } = await (await frame.$(".run-column")).boundingBox();
  const found = [];
  for (const [across, down] of [
    [x + 5, y + 5],
    [Math.min(width, x + wide) - 5, Math.min(height, y + tall) - 25],
  ]) {
    await page.mouse.move(across, down);
    await idle(frame);
    found.push(await outside(frame, ".tooltip"));
  }
  return found;
}

/** In the page: names of runs of which a part isn't seen at all, or leaves its box. */
function lostParts() {
  return [...document.querySelectorAll(".path")].flatMap((path) => {
    const { left, right } = path.getBoundingClientRect();
    const lost = [...path.children].some((part) => {
      const box = part.getBoundingClientRect();
      return part.scrollWidth > 0 && (box.width < 4 || box.left < left - 1 || box.right > right + 1);
    });
    // A layer may be called by a space, which is narrow.
    const named = path.textContent.trim() !== "";
    return lost && named && path.checkVisibility() && right > left ? [path.textContent] : [];
  });
}

/** The same in windows of some widths. */
export const narrowNames = (visit, options) => atWidths(visit, options, lostParts);

/** In the page: where each control of the toolbar is, as lines of text are: from left to right, then down. */
function barRows() {
  const rows = Map.groupBy(document.querySelector(".toolbar").children, (part) => {
    const { top, bottom } = part.getBoundingClientRect();
    return Math.round((top + bottom) / 2);
  });
  rows.delete(0); // what isn't shown
  return [...rows.values()].map((parts) => parts.map((part) => part.classList[0]));
}

export const toolbar = (visit, options) => atWidths(visit, options, barRows);

/** What lists of runs are called in them. */
export async function runLists({ base, newPage }, { run }) {
  const page = await newPage();
  const frame = await openFrame(page, base, { hash: hashOf({ v: "compare", a: run }) });
  const options = (selector) => text(frame, `${selector} option`);
  const found = { pair: await options(".pair select"), audit: await options(".audit select") };
  await goTo(page, frame, hashOf({ v: "function" }));
  found.unprobed = await text(frame, ".empty > p:last-child");
  return found;
}

/** How much wider than its panel the text of a probe is, whose input has a name that is one long word. */
export async function probeText({ base, newPage }) {
  const page = await newPage({ width: 1280, height: 800 });
  const frame = await openFrame(page, base, { hash: hashOf({ v: "function" }) });
  return frame.$eval(".fn-probe", (panel) => {
    panel.querySelector("li").textContent = "x".repeat(200);
    return panel.scrollWidth - panel.clientWidth;
  });
}

/** Of what stays inside a narrow window in each view: how far it is outside; and how much of a strip is seen. */
export async function narrow({ base, newPage }, { width, hashes }) {
  const page = await newPage({ width, height: 760 });
  const frame = await openFrame(page, base);
  const found = {};
  for (const [name, hash] of Object.entries(hashes)) {
    await goTo(page, frame, hashOf(hash));
    await click(frame, ".download > button");
    found[name] = { menu: await outside(frame, ".menu"), bar: await outside(frame, ".toolbar > .joined") };
    await press(frame, "Escape");
  }
  await goTo(page, frame, hashOf(hashes.network));
  found.strips = await frame.$eval(".run-column", (column) => {
    const { left, top } = column.getBoundingClientRect();
    const seen = (x) => document.elementFromPoint(x, top + 30)?.closest(".run-column") === column;
    return Array.from({ length: 92 }, (_, x) => left + x).filter(seen).length;
  });
  found.painted = await frame.$eval(".net-body > canvas", ({ width }) => width);
  await press(frame, "?");
  found.keys = await outside(frame, "dialog[open]");
  await press(frame, "Escape");
  await goTo(page, frame, hashOf(hashes.layer));
  const boxes = await frame.$$eval(".layer-title > *", (all) =>
    all.map((one) => one.getBoundingClientRect()).map(({ left, right, top }) => ({ left, right, top })),
  );
  found.overlaps = boxes.filter((a, i) => boxes[i + 1]?.top === a.top && boxes[i + 1].left < a.right).length;
  return found;
}

/** Of the colours that tell something, how many there are where the system's colours replace the page's. */
export async function forced({ base, newPage }) {
  const page = await newPage();
  await page.emulateMedia({ forcedColors: "active" });
  const frame = await openFrame(page, base, { hash: hashOf({ v: "network" }) });
  const colours = (selector) =>
    frame.$$eval(selector, (all) => {
      const found = all
        .map((one) => getComputedStyle(one))
        .map((own) => `${own.backgroundColor} ${own.backgroundImage}`);
      return new Set(found).size;
    });
  const found = { legend: await colours(".legend .swatch"), bar: await colours(".run-head .bar span") };
  found.pressed = await colours(".toolbar [aria-label=View] .button");
  return found;
}
