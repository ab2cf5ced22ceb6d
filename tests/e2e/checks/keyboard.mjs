// What the keyboard alone reaches: every control by Tab, each with a name and an outline to be seen.
import { idle } from "../../../frontend/scripts/browser.mjs";
import { click, goTo, NETWORK, openFrame, painted, text } from "../visit.mjs";

/** Marks each control that can be seen and used, and tells how many there are. */
const mark = (frame) =>
  frame.evaluate(() => {
    const controls = "a[href], button, input, select, textarea, summary, [tabindex]:not([tabindex='-1'])";
    const open = document.querySelector("dialog[open]");
    const found = [...(open ?? document).querySelectorAll(controls)].filter(
      (element) => !element.disabled && element.checkVisibility({ visibilityProperty: true }),
    );
    for (const old of document.querySelectorAll("[data-stop]")) delete old.dataset.stop;
    found.forEach((element, at) => {
      element.dataset.stop = at;
    });
    return found.map((element) => `${element.localName}.${element.className} ${element.textContent}`.slice(0, 60));
  });

/** The control that has the focus: its mark, its name, and whether its outline can be seen. */
const focused = (frame) =>
  frame.evaluate(() => {
    const element = document.activeElement;
    if (!element || element === document.body) return null;
    const style = getComputedStyle(element);
    const label = element.labels?.[0]?.textContent;
    const by = (element.getAttribute("aria-labelledby") ?? "")
      .split(" ")
      .map((id) => document.getElementById(id)?.textContent);
    const name =
      element.ariaLabel || by.join("") || label || element.textContent || element.title || element.placeholder;
    const box = element.getBoundingClientRect();
    const inside = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
    return {
      stop: element.dataset.stop ?? null,
      name: (name ?? "").trim(),
      outline: style.outlineStyle !== "none" && Number.parseFloat(style.outlineWidth) >= 2 ? style.outlineColor : null,
      inside,
      what: `${element.localName}.${element.className}`,
    };
  });

/** What looks as if it could be clicked, and is neither a control nor in one. */
const pointed = (frame) =>
  frame.evaluate(() => {
    const found = [...document.querySelectorAll("body *")].filter((element) => {
      const { cursor } = getComputedStyle(element);
      const own =
        cursor !== "auto" && cursor !== "default" && cursor !== getComputedStyle(element.parentElement).cursor;
      return own && !element.closest("button, a, input, select, summary, label, [tabindex]:not(div)");
    });
    return [...new Set(found.map((element) => `${element.localName}.${element.className.split(" ")[0]}`))];
  });

/** Goes through all stops of a state by Tab. */
async function walk(page, frame) {
  const wanted = await mark(frame);
  const reached = new Map();
  // A menu begins with the focus on its first item, and closes when Tab leaves it.
  await page.keyboard.press("Shift+Tab");
  for (let presses = 0; presses < 3 * wanted.length + 20 && reached.size < wanted.length; presses++) {
    await page.keyboard.press("Tab");
    const at = await focused(frame);
    if (at && at.stop !== null) reached.set(Number(at.stop), at);
  }
  const missed = wanted.filter((_, at) => !reached.has(at));
  const seen = [...reached.values()];
  return {
    stops: wanted.length,
    missed,
    nameless: seen.filter(({ name }) => name === "").map(({ what }) => what),
    bare: seen.filter(({ outline }) => outline === null).map(({ what, name }) => `${what} ${name}`.slice(0, 60)),
    outside: seen.filter(({ inside }) => !inside).map(({ what, name }) => `${what} ${name}`.slice(0, 60)),
    outlines: [...new Set(seen.map(({ outline }) => outline))],
  };
}

/** Each state of the page, in a theme: `press` and `click` lead on from its address, `plant` spoils it. */
export async function keyboard({ base, newPage }, { states, dark }) {
  const page = await newPage();
  const frame = await openFrame(page, base, { dark });
  const found = {};
  for (const [name, { hash, press = [], click = [], plant }] of Object.entries(states)) {
    await goTo(page, frame, hash);
    await frame.evaluate(() => document.activeElement?.blur());
    for (const selector of click) await frame.click(selector);
    for (const key of press) await frame.press("body", key);
    if (plant) await frame.evaluate(plant);
    await painted(frame);
    found[name] = { ...(await walk(page, frame)), pointed: await pointed(frame) };
    for (const _ of press) await frame.press("body", "Escape");
    for (const selector of click) if (await frame.$(selector)) await frame.click(selector);
    await painted(frame);
  }
  return found;
}

/** Where the focus is after a button is gone: an item of the menu, the menu itself as Tab leaves it, "only" of a run. */
export async function gone({ base, newPage }) {
  const page = await newPage();
  const frame = await openFrame(page, base, { hash: NETWORK });
  const name = async () => (await focused(frame))?.name ?? null;
  const menus = () => frame.$$eval(".menu", (all) => all.length);
  const found = {};
  await click(frame, ".download > button");
  await page.keyboard.press("Enter");
  await idle(frame);
  found.chosen = [await name(), await menus()];
  await click(frame, ".download > button");
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Shift+Tab");
  await idle(frame);
  found.left = [await name(), await menus()];
  await frame.focus(".runs .tag[aria-label^=Only]");
  await page.keyboard.press("Enter");
  await idle(frame);
  found.only = [(await focused(frame))?.what ?? null, (await text(frame, ".run-head-name")).length];
  return found;
}

/** Presses of Tab from the beginning of the page to a control of the first finding, by the skip link. */
export async function skipped({ base, newPage }) {
  const page = await newPage();
  const frame = await openFrame(page, base);
  await goTo(page, frame, "");
  await painted(frame);
  // The page has the focus, and nothing in it.
  await frame.evaluate(() => {
    window.focus();
    document.body.tabIndex = -1;
    document.body.focus();
    document.body.removeAttribute("tabindex");
  });
  const inFinding = () => frame.evaluate(() => document.querySelector(".finding")?.contains(document.activeElement));
  for (let presses = 1; presses <= 30; presses++) {
    await page.keyboard.press("Tab");
    if ((await focused(frame))?.what === "button.skip") await page.keyboard.press("Enter");
    if (await inFinding()) return presses;
  }
  return null;
}
