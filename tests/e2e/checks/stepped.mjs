// The inspector while keys step through channels: what it tells in each frame.
import { idle } from "../../../frontend/scripts/browser.mjs";
import { openFrame } from "../visit.mjs";

/** In the page: looks at each frame which channel the inspector names, and with which numbers. */
function watchFrames() {
  const told = {};
  window.__told = told;
  const look = () => {
    const name = document.querySelector(".inspector h2").textContent;
    const numbers = [...document.querySelectorAll(".inspector .metric dd")].map((one) => one.textContent).join(" | ");
    told[name] ??= [];
    if (told[name].at(-1) !== numbers) told[name].push(numbers);
    requestAnimationFrame(look);
  };
  look();
}

/** Presses keys without waiting, and tells by channel which numbers were shown with its name, and the last name. */
export async function steppedChannels({ base, newPage }, { hash, keys }) {
  const page = await newPage();
  const frame = await openFrame(page, base, { hash });
  await frame.evaluate(watchFrames);
  await frame.focus("body");
  for (const key of keys) await page.keyboard.press(key);
  await idle(frame);
  const last = await frame.$eval(".inspector h2", (one) => one.textContent);
  const titles = await frame.$$eval(".inspector h3 .sub", (all) => all.map((one) => one.textContent));
  return { told: await frame.evaluate(() => window.__told), last, titles };
}
