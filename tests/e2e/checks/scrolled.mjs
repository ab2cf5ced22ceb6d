// Strips that scrolling has carried to another place, and the same ones drawn afresh.
import { hashOf, openFrame, painted, press } from "../visit.mjs";

/** Repeated blocks are closed at first: all are opened. */
const STAGES = [0, 1, 2, 3, 4, 5].map((stage) => `stage${stage}`);
const OPENED = hashOf({ v: "network", g: STAGES.map(encodeURIComponent).join(",") });

/** In the page: a number for the pixels of each strip that lies whole in the picture, by run and row. */
function readStrips() {
  const canvas = document.querySelector("canvas.strips");
  const context = canvas.getContext("2d");
  const ratio = canvas.width / canvas.clientWidth;
  // Read at once: each reading takes long, however small it is.
  const whole = new Uint32Array(context.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  const sum = (x, y, w, h) => {
    let found = 7;
    for (let row = y; row < y + h; row++)
      for (let at = row * canvas.width + x, end = at + w; at < end; at++) found = (found * 31 + whole[at]) % 1_000_003;
    return found;
  };
  const runs = [...document.querySelectorAll(".run-head")].map((head) => head.title);
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
      found[runs[run]][layer] = sum(x, y, w, h);
    }
  });
  return found;
}

const strips = (frame) => frame.evaluate(readStrips);

/** In the page: looks at each frame what is drawn, and whether it reaches as far as what is in sight. */
function watchFrames(read) {
  const looked = { sums: {}, gaps: [], tops: [] };
  const span = (selector) => {
    const all = [...document.querySelectorAll(selector)].map((one) => one.getBoundingClientRect());
    return [Math.min(...all.map(({ top }) => top)), Math.max(...all.map(({ bottom }) => bottom))];
  };
  const look = () => {
    const [[, top], [, bottom], body] = [".net-head", ".net", ".net-body"].map(span);
    for (const selector of ["canvas.strips", ".dots-column canvas", ".net-name"]) {
      const [first, last] = span(selector);
      const gap = Math.max(first - Math.max(top, body[0]), Math.min(bottom, body[1]) - last);
      // A margin below the last row.
      if (gap > 4) looked.gaps.push([selector, gap]);
    }
    for (const [run, rows] of Object.entries(read()))
      for (const [row, sum] of Object.entries(rows)) {
        looked.sums[`${run} ${row}`] ??= [];
        if (!looked.sums[`${run} ${row}`].includes(sum)) looked.sums[`${run} ${row}`].push(sum);
      }
    looked.tops.push(document.querySelector("canvas.strips").offsetTop);
    window.__looked = looked;
    requestAnimationFrame(look);
  };
  // What the frame's own callbacks have drawn is seen.
  requestAnimationFrame(look);
}

/** Turns the wheel and looks at each frame: what is in sight is drawn, as it is in the end. */
export async function wheeled({ base, newPage }, { turns }) {
  const page = await newPage();
  const frame = await openFrame(page, base, { hash: OPENED });
  const { x, y, width, height } = await (await frame.waitForSelector(".net")).boundingBox();
  await page.mouse.move(x + width / 2, y + height / 2);
  await frame.evaluate(`(${watchFrames})(${readStrips})`);
  for (const turn of turns) {
    await page.mouse.wheel(0, turn);
    await painted(frame);
  }
  return frame.evaluate(() => window.__looked);
}

export async function scrolledNetwork({ base, newPage }, { places, ratio }) {
  const frame = await openFrame(await newPage({ ratio }), base, { hash: OPENED });
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

/** Scrolls down, leaves one layer by the filter, and all again: the names that are in sight. */
export async function filteredBelow({ base, newPage }, { filter }) {
  const frame = await openFrame(await newPage(), base, { hash: OPENED });
  const seen = () =>
    frame.evaluate(() => {
      const net = document.querySelector(".net").getBoundingClientRect();
      const inside = ({ top, bottom }) => top < net.bottom && bottom > net.top;
      const names = [...document.querySelectorAll(".net-name")].filter((one) => inside(one.getBoundingClientRect()));
      return names.map((one) => one.querySelector("bdi, b").textContent);
    });
  await frame.$eval(".net", (net) => net.scrollTo(0, 1500));
  await painted(frame);
  await frame.fill("#layer-filter", filter);
  await painted(frame);
  const few = await seen();
  await frame.fill("#layer-filter", "");
  await painted(frame);
  return { few, all: await seen() };
}

/** Turns the wheel under a pointer that rests on a strip: the tooltip's title, and the layer whose name is at its height. */
export async function pointedRows({ base, newPage }, { turns }) {
  const page = await newPage();
  const frame = await openFrame(page, base, { hash: OPENED });
  const { x, y } = await (await frame.waitForSelector(".run-column")).boundingBox();
  await frame.evaluate(() => addEventListener("pointermove", ({ clientY }) => (window.__y = clientY), true));
  await page.mouse.move(x + 40, y + 300);
  const found = [];
  for (const [right, down] of turns) {
    await page.mouse.wheel(right, down);
    await painted(frame);
    found.push(
      await frame.evaluate(() => {
        const rows = [...document.querySelectorAll(".net-name:not(.total)")].map((one) => [
          one,
          one.getBoundingClientRect(),
        ]);
        const own = rows.find(([, { top, bottom }]) => top <= window.__y && window.__y < bottom);
        return {
          told: document.querySelector(".tip-title")?.textContent ?? null,
          row: own?.[0].querySelector("button").title.split(": ")[0] ?? null,
        };
      }),
    );
  }
  return found;
}
