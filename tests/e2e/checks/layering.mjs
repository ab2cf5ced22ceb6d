// Pins, differences to the baseline, orders and boxes of rows.
import { axe, idle } from "../../../frontend/scripts/browser.mjs";
import { click, goTo, hash, hashOf, openFrame, press, rows, text } from "../visit.mjs";

const labels = (frame, selector) => frame.$$eval(selector, (all) => all.map((one) => one.ariaLabel));
const settled = async (page, frame) => {
  const link = await frame.evaluate(() => document.documentElement.dataset.pastnetUrl ?? "");
  await page.waitForFunction((expected) => location.hash === expected, link);
  return link;
};

/** Pins by key and button, taken out, left behind with the layer, found again by Back. */
export async function pins({ base, newPage }, { layer, run }) {
  const page = await newPage();
  const frame = await openFrame(page, base, { hash: hashOf({ v: "layer", l: layer, r: run, o: "index", c: 0 }) });
  const found = {};
  const pinned = () => text(frame, ".pins .linked");
  await press(frame, "p", "ArrowDown", "ArrowDown", "p");
  found.two = { pinned: await pinned(), hash: await settled(page, frame), said: await text(frame, "[role=status]") };
  found.pictures = await labels(frame, ".pins canvas");
  found.axe = await axe(frame);
  await click(frame, ".pins .linked >> nth=0");
  found.selected = await text(frame, ".inspector h2");
  found.button = await frame.getAttribute(".inspector .button[aria-label^=Pin]", "aria-pressed");
  await click(frame, ".pins button[aria-label='Unpin channel 2']");
  found.one = await pinned();
  for (let i = 0; i < 7; i++) await press(frame, "ArrowDown", "p");
  found.most = await pinned();
  found.gone = (await text(frame, "[role=status]")).join("");
  const afresh = await openFrame(await newPage(), base, { hash: (await settled(page, frame)).replace(/^#pastnet/, "") });
  found.afresh = await text(afresh, ".pins .linked");
  await press(frame, "j");
  found.elsewhere = await pinned();
  return found;
}

/** Differences to the baseline: by key, with another baseline, in a layer, of another origin. */
export async function differences({ base, newPage }, { step, layer, channel, foreign }) {
  const page = await newPage();
  const frame = await openFrame(page, base, { hash: hashOf({ v: "network", s: step }) });
  const found = { before: await labels(frame, ".strips-label") };
  await press(frame, "d");
  found.network = {
    strips: await labels(frame, ".strips-label"),
    dots: await labels(frame, ".dots-column canvas"),
    heads: await text(frame, ".run-head .two:not(.weights)"),
    scale: await text(frame, "[aria-label='Scale of differences']"),
    pressed: await text(frame, ".toolbar [aria-pressed=true]"),
    hash: await settled(page, frame),
    axe: await axe(frame),
  };
  await click(frame, ".net-title .button.small");
  found.table = await rows(frame, ".net");
  await click(frame, ".panel-top .button.small");
  await frame.focus(".tag[aria-label='Baseline: leaky']");
  await page.keyboard.press("Enter");
  await idle(frame);
  found.other = { tags: await labels(frame, ".tag[aria-pressed=true]"), strips: await labels(frame, ".strips-label") };
  await goTo(page, frame, hashOf({ v: "layer", l: layer, r: "dense", b: "leaky", vs: 1, s: step, c: channel }));
  found.layer = { label: (await labels(frame, ".heat-plot canvas"))[1], axe: await axe(frame) };
  await click(frame, ".layer-title .button.small");
  found.channels = await rows(frame, ".layer-panel");
  await click(frame, ".layer-title .button.small");
  await goTo(page, frame, hashOf({ v: "layer", l: layer, r: foreign, b: "leaky", vs: 1, s: step }));
  found.foreign = {
    notes: await text(frame, ".layer-panel .note"),
    label: (await labels(frame, ".heat-plot canvas"))[1],
  };
  const dark = await openFrame(await newPage(), base, {
    dark: true,
    hash: hashOf({ v: "layer", l: layer, r: "dense", b: "leaky", vs: 1 }),
  });
  found.dark = await axe(dark);
  return found;
}

/** A drag over the heatmap, one down it, one along the strip; and back. */
export async function boxes({ base, newPage }, { layer, run }) {
  const page = await newPage();
  const frame = await openFrame(page, base, { hash: hashOf({ v: "layer", l: layer, r: run, o: "index" }) });
  const drag = async (selector, from, to) => {
    const box = await (await frame.$(selector)).boundingBox();
    const place = ([x, y]) => [box.x + x * box.width, box.y + y * box.height];
    await page.mouse.move(...place(from));
    await page.mouse.down();
    await page.mouse.move(...place([(from[0] + to[0]) / 2, (from[1] + to[1]) / 2]));
    await page.mouse.move(...place(to));
    const shown = await frame.$$eval(
      ".zoom-box",
      (all) => all.filter(({ style }) => Number.parseFloat(style.getPropertyValue("--to")) > 0).length,
    );
    await page.mouse.up();
    await idle(frame);
    await settled(page, frame);
    return {
      shown,
      hash: await hash(page),
      numbers: await text(frame, ".gutter-number"),
      chip: await text(frame, ".zoom-chip"),
    };
  };
  const heat = ".heat-plot canvas >> nth=1";
  const found = { both: await drag(heat, [0.251, 0.26], [0.749, 0.74]) };
  await press(frame, "ArrowDown", "ArrowDown");
  found.walked = await text(frame, ".inspector h2");
  found.again = await drag(heat, [0.5, 0.01], [0.5, 0.49]);
  await press(frame, "0");
  await settled(page, frame);
  found.reset = { hash: await hash(page), numbers: await text(frame, ".gutter-number") };
  found.down = await drag(heat, [0.5, 0.26], [0.52, 0.99]);
  await click(frame, ".zoom-chip");
  found.along = await drag(".heat-plot canvas >> nth=0", [0.25, 0.1], [0.75, 0.9]);
  return found;
}

/** The order of another run, and the mask overlap beside the thumbnails. */
export async function orders({ base, newPage }, { layer, run, others, step }) {
  const page = await newPage();
  const frame = await openFrame(page, base, { hash: hashOf({ v: "layer", l: layer, r: run, o: "held", s: step }) });
  const found = { thumbs: {}, rows: {}, notes: {} };
  for (const thumb of await frame.$$(".thumb")) {
    const name = await thumb.$eval(".path", (one) => one.textContent);
    found.thumbs[name] = {
      text: await thumb.$eval(".thumb-head .sub", (one) => one.textContent),
      hint: await thumb.getAttribute("title"),
    };
  }
  for (const other of others) {
    await frame.selectOption(".sort", `of ${other}`);
    await idle(frame);
    found.notes[other] = await text(frame, ".layer-panel .note");
    await click(frame, ".layer-title .button.small");
    found.rows[other] = (await rows(frame, ".layer-panel")).map((row) => Number(row[0]));
    await click(frame, ".layer-title .button.small");
  }
  found.hash = await settled(page, frame);
  return found;
}
