// The inspector while keys step through channels: what it tells in each frame.
import { idle } from "../../../frontend/scripts/browser.mjs";
import { openFrame, press } from "../visit.mjs";

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

/** The step of the numbers, by the pill and the line of numbers: with the pointer on a picture, after keys, and moved. */
export async function keyedUnderPointer({ base, newPage }, { hash, picture, keys }) {
  const page = await newPage();
  const frame = await openFrame(page, base, { hash });
  const box = await frame.locator(picture).first().boundingBox();
  const told = [];
  const look = async () => {
    await idle(frame);
    const texts = await Promise.all([".pill", ".readout > b"].map((part) => frame.locator(part).first().textContent()));
    told.push(texts.map((text) => text.replace("Step ", "")));
  };
  await page.mouse.move(box.x + box.width / 3, box.y + box.height / 2);
  await look();
  for (const key of keys) {
    await press(frame, key);
    await look();
  }
  await page.mouse.move(box.x + box.width / 3, box.y + box.height / 2 + 1);
  await look();
  return told;
}
