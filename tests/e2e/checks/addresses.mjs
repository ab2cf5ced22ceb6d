// Every address restores what was shown: opened afresh, come to from another, gone back to.
import { idle, openTab } from "../../../frontend/scripts/browser.mjs";
import { goTo, openFrame, painted } from "../visit.mjs";

const written = (frame) => frame.evaluate(() => document.documentElement.dataset.pastnetUrl);

/** All that can be seen: texts, states of controls, and each canvas by its label and its pixels. */
const everything = (frame) =>
  frame.evaluate(() => {
    const all = (selector, read) => [...document.querySelectorAll(selector)].map(read);
    const sum = (canvas) => {
      if (canvas.width === 0 || canvas.height === 0) return 0;
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let hash = 2166136261;
      for (const pixel of new Uint32Array(data.buffer)) hash = Math.imul(hash ^ pixel, 16777619);
      return hash;
    };
    return JSON.stringify({
      text: all(".page > :not([role=status])", (part) => part.textContent),
      pressed: all("[aria-pressed=true]", (button) => button.textContent),
      values: all("select, input", (input) => (input.type === "checkbox" ? input.checked : input.value)),
      open: all("dialog[open]", (dialog) => dialog.textContent),
      canvases: all("canvas", (canvas) => [canvas.ariaLabel, sum(canvas)]),
    });
  });

/** What differs first between two texts, for a person to read. */
function difference(one, other) {
  if (one === other) return null;
  let at = 0;
  while (one[at] === other[at]) at++;
  return [one, other].map((text) => text.slice(Math.max(0, at - 60), at + 60));
}

/** Steps that are gone back; a browser forgets all but the last fifty. */
const BACK = 25;

const LATE_MS = 100;

/** Timers as on a busy machine: frames come before them. */
function lateTimers(late) {
  const timer = window.setTimeout;
  window.setTimeout = (work, wait = 0, ...given) => timer(work, wait + late, ...given);
}

/** For each address: what the page says its address is, and how what is shown differs by the way one came to it. */
export async function addresses({ base, newPage }, { hashes }) {
  const page = await newPage();
  const fresh = [];
  for (const hash of hashes) {
    await page.goto("about:blank");
    const frame = await openFrame(page, base, { hash });
    await painted(frame);
    fresh.push({ url: await written(frame), seen: await everything(frame) });
  }
  await page.goto("about:blank");
  await page.addInitScript(lateTimers, LATE_MS);
  const frame = await openTab(page, base);
  for (const [at, hash] of hashes.entries()) {
    await goTo(page, frame, hash);
    await painted(frame);
    fresh[at].come = difference(fresh[at].seen, await everything(frame));
  }
  for (let at = hashes.length - 2; at >= Math.max(0, hashes.length - BACK); at--) {
    await moved(page, () => page.evaluate(() => history.back()));
    await idle(frame);
    await painted(frame);
    fresh[at].back = difference(fresh[at].seen, await everything(frame));
  }
  await moved(page, () => page.evaluate(() => history.forward()));
  await idle(frame);
  await painted(frame);
  const after = fresh[Math.max(0, hashes.length - BACK) + 1];
  after.forward = difference(after.seen, await everything(frame));
  return fresh.map(({ seen, ...rest }) => ({ ...rest, size: seen.length }));
}

/** Goes through the history, until the page has heard of it. */
async function moved(page, go) {
  await page.evaluate(() => {
    window.heard = false;
    addEventListener("hashchange", () => (window.heard = true), { once: true });
  });
  await go();
  await page.waitForFunction(() => window.heard);
}
