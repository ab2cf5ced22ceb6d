// What the main thread does after each input, from Chromium's own trace.

const MARK = "pastnet";
const CATEGORIES = ["blink.user_timing", "cc", "toplevel"];

/** Waits until nothing is under way, with the patience that a server needs which isn't warm yet. */
export const idle = (frame) =>
  frame.waitForFunction(() => document.documentElement?.dataset.pastnetIdle === "true", null, { timeout: 600_000 });

/** Milliseconds in which all is drawn that an input asks for, answers included, and those of rest before the next one. */
const [DRAWN, AFTER] = [250, 50];
/** Nothing is asked of the page meanwhile: that would be work, too. */
export const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** Microseconds of the clock that Chromium's trace tells: the monotonic one. */
const now = () => Number(process.hrtime.bigint() / 1000n);

/** Measures inputs one by one; what they ask for may come afterwards, when nothing is measured. */
async function each({ browser, page, frame, found }, name, count, input) {
  await browser.startTracing(page, { categories: CATEGORIES });
  await frame.evaluate((mark) => performance.mark(mark), MARK);
  await wait(AFTER);
  const times = [];
  for (let i = 0; i < count; i++) {
    const from = now();
    await input(i);
    await wait(DRAWN);
    times.push([from, now()]);
    await wait(AFTER);
  }
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
  found[name] = workOf(traceEvents, times);
  await idle(frame);
}

/**
 * Does some inputs under the tracer.
 *
 * @returns by name, for each input, the work of the frame that took the most, in milliseconds of the main thread's own
 * time, which another program on the machine doesn't add to.
 */
export async function inputs(browser, page, frame, { layer, inputs: count }) {
  const found = {};
  const here = { browser, page, frame, found };
  const area = async (selector) => (await frame.waitForSelector(selector)).boundingBox();
  const glide = (box) => (i) =>
    page.mouse.move(
      box.x + 8 + ((i * 13) % (box.width - 16)),
      box.y + 8 + ((i * 7) % (Math.min(box.height, 500) - 16)),
    );
  const drag = (box) => async (i) => {
    if (i % 2 === 1) return page.keyboard.press("0");
    await page.mouse.move(box.x + 10 + i, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width - 20, box.y + 60);
    await page.mouse.up();
  };
  await each(here, "nothing", count, () => {});
  const column = await area(".run-column");
  const net = await area(".net");
  const columns = { ...net, x: column.x, width: net.x + net.width - column.x - 200, y: column.y };
  await each(here, "hover over the network", count, glide(columns));
  await page.mouse.move(1, 1);
  await each(here, "step by keys, network", count, () => page.keyboard.press("ArrowLeft"));
  await page.mouse.move(net.x + net.width / 2, net.y + net.height / 2);
  await each(here, "scroll through 300 layers", count, () => page.mouse.wheel(0, 240));
  await frame.evaluate(() => {
    document.querySelector(".net").scrollTop = 0;
  });
  await each(here, "zoom the network", 8, drag(column));
  if (!layer) return found;
  await frame.fill("#layer-filter", `^${layer}$`);
  await idle(frame);
  await frame.click(".layer-name");
  await idle(frame);
  const plot = await area(".heat-plot");
  await each(here, "hover over the heatmap", count, glide({ ...plot, y: plot.y + 64, height: plot.height - 64 }));
  await page.mouse.move(1, 1);
  await each(here, "step by keys, layer", count, () => page.keyboard.press("ArrowLeft"));
  await each(here, "next channel by keys", count, () => page.keyboard.press("ArrowDown"));
  await each(here, "zoom the heatmap", 8, drag({ ...plot, y: plot.y + 64 }));
  return found;
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

/** Of the frames after each input the work of the one that took the most, on the thread that set the mark. */
function workOf(traceEvents, times) {
  traceEvents.sort((a, b) => a.ts - b.ts);
  const { pid, tid } = traceEvents.find(({ cat, name }) => cat.includes("blink.user_timing") && name === MARK);
  const frames = framesOf(traceEvents.filter((event) => event.pid === pid && event.tid === tid && event.tdur));
  return times.map(([from, until]) =>
    Math.max(0, ...frames.filter(({ ts }) => ts >= from && ts < until).map(({ work }) => work)),
  );
}
