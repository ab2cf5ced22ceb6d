// Strips that scrolling has carried to another place, and the same ones drawn afresh.
import { openGallery } from "../../../frontend/scripts/browser.mjs";
import { painted, press } from "../visit.mjs";

/** A number for the pixels of each strip that lies whole in the picture, by run and row. */
const strips = (frame) =>
  frame.evaluate(() => {
    const canvas = document.querySelector("canvas.strips");
    const context = canvas.getContext("2d");
    const ratio = canvas.width / canvas.clientWidth;
    const sum = (data) => data.reduce((a, b) => (a * 31 + b) % 1_000_003, 7);
    const runs = [...document.querySelectorAll(".run-head .path")].map((name) => name.textContent);
    const found = {};
    document.querySelectorAll(".run-column").forEach((column, run) => {
      const label = column.querySelector(".strips-label");
      if (!label) return;
      found[runs[run]] = {};
      for (const name of document.querySelectorAll(".net-name.layer")) {
        const top = name.offsetTop + Number.parseFloat(name.style.paddingTop) + 1 - canvas.offsetTop;
        const height = name.querySelector(".net-name-line").clientHeight - 2;
        if (top < 0 || top + height > canvas.clientHeight) continue;
        const [x, y] = [column.offsetLeft - canvas.offsetLeft, top].map((side) => Math.round(side * ratio));
        const [w, h] = [label.clientWidth, height].map((side) => Math.round(side * ratio));
        const layer = name.querySelector("button").title.split(": ")[0];
        found[runs[run]][layer] = sum(context.getImageData(x, y, w, h).data);
      }
    });
    return found;
  });

export async function scrolledNetwork({ base, newPage }, { scenario, places, ratio }) {
  const frame = await openGallery(await newPage({ ratio }), base, scenario);
  const found = [];
  for (const [left, top] of places) {
    await frame.$eval(".net", (net, place) => net.scrollTo(...place), [left, top]);
    await painted(frame);
    const scrolled = await strips(frame);
    // Differences to the baseline and back: nothing is carried from another kind of picture.
    await press(frame, "d", "d");
    found.push({ scrolled, afresh: await strips(frame) });
  }
  return found;
}
