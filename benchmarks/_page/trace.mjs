// What the main thread does after each input, from Chromium's own trace.

const MARK = "pastnet ";
const CATEGORIES = ["blink.user_timing", "cc", "toplevel"];

/** Waits until nothing is under way, with the patience that a server needs which isn't warm yet. */
export const idle = (frame) =>
  frame.waitForFunction(() => document.documentElement?.dataset.pastnetIdle === "true", null, { timeout: 600_000 });

/** Waits until the frame after the next one: what the last input asked for is drawn by then. */
const drawn = (frame) =>
  frame.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done()))));

async function each(frame, name, count, input, settled = drawn) {
  for (let i = 0; i < count; i++) {
    await frame.evaluate((mark) => performance.mark(mark), `${MARK}${name}`);
    await input(i);
    await settled(frame);
  }
  await frame.evaluate((mark) => performance.mark(mark), `${MARK}end`);
  await idle(frame);
}

/** The inputs whose work is measured. */
export async function inputs(page, frame, { layer, inputs: count }) {
  const area = async (selector) => (await frame.waitForSelector(selector)).boundingBox();
  const glide = (box) => (i) =>
    page.mouse.move(
      box.x + 8 + ((i * 13) % (box.width - 16)),
      box.y + 8 + ((i * 7) % (Math.min(box.height, 500) - 16)),
    );
  const drag = (box) => async (i) => {
    if (i % 2 === 1) return frame.press("body", "0");
    await page.mouse.move(box.x + 10 + i, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width - 20, box.y + 60);
    await page.mouse.up();
  };
  await each(frame, "nothing", count, () => {});
  const column = await area(".run-column");
  const net = await area(".net");
  await each(
    frame,
    "hover over the network",
    count,
    glide({ ...net, x: column.x, width: net.x + net.width - column.x - 200, y: column.y }),
  );
  await page.mouse.move(1, 1);
  await each(frame, "step by keys, network", count, () => frame.press("body", "ArrowLeft"));
  await page.mouse.move(net.x + net.width / 2, net.y + net.height / 2);
  await each(frame, "scroll through 300 layers", count, () => page.mouse.wheel(0, 240));
  await frame.evaluate(() => {
    document.querySelector(".net").scrollTop = 0;
  });
  await each(frame, "zoom the network, at once", 6, drag(column));
  await each(frame, "zoom the network, with data", 6, drag(column), idle);
  if (!layer) return;
  await frame.fill("#layer-filter", `^${layer}$`);
  await idle(frame);
  await frame.click(".layer-name");
  await idle(frame);
  const plot = await area(".heat-plot");
  await each(frame, "hover over the heatmap", count, glide({ ...plot, y: plot.y + 64, height: plot.height - 64 }));
  await page.mouse.move(1, 1);
  await each(frame, "step by keys, layer", count, () => frame.press("body", "ArrowLeft"));
  await each(frame, "next channel by keys", count, () => frame.press("body", "ArrowDown"));
  await each(frame, "zoom the heatmap", 8, drag({ ...plot, y: plot.y + 64 }));
}

const isTask = ({ name }) => name === "ThreadControllerImpl::RunTask";

/** The tasks of a thread by frame: all since the frame before, up to the one that renders. */
function framesOf(events) {
  const renders = events.filter(({ name }) => name === "ProxyMain::BeginMainFrame");
  const frames = [];
  let next = 0;
  let work = 0;
  for (const { ts, dur, tdur } of events.filter(isTask)) {
    work += tdur / 1000;
    while (next < renders.length && renders[next].ts < ts) next++;
    if (next === renders.length || renders[next].ts > ts + dur) continue;
    frames.push({ ts, work });
    work = 0;
  }
  return frames;
}

/**
 * Runs some inputs under the tracer: by name, for each of them, the work of the frame that took the most, in
 * milliseconds of the main thread's own time, which another program on the machine doesn't add to.
 */
export async function trace(browser, page, run) {
  await browser.startTracing(page, { categories: CATEGORIES });
  await run();
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
  traceEvents.sort((a, b) => a.ts - b.ts);
  const marks = traceEvents.filter(({ cat, name }) => cat.includes("blink.user_timing") && name.startsWith(MARK));
  const [{ pid, tid }] = marks;
  const frames = framesOf(traceEvents.filter((event) => event.pid === pid && event.tid === tid && event.tdur));
  const found = {};
  marks.forEach(({ name, ts }, i) => {
    const until = marks[i + 1]?.ts ?? Number.POSITIVE_INFINITY;
    const own = frames.filter((frame) => frame.ts >= ts && frame.ts < until).map((frame) => frame.work);
    const what = name.slice(MARK.length);
    if (what === "end") return;
    found[what] ??= [];
    found[what].push(Math.max(0, ...own));
  });
  return found;
}
