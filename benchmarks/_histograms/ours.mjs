// The twenty questions, asked of the PastNet tab. Answers are read off its texts; where a picture has to be read, off its pixels.
import { idle, openTab } from "../../frontend/scripts/browser.mjs";
import { middle, No } from "./hand.mjs";

let frame;

export async function open(page, base) {
  await page.goto("about:blank");
  frame = await openTab(page, base, { hash: "&p.pastnet.v=network" });
  return frame;
}

export const settled = () => idle(frame);

const number = (text) => {
  const [, digits, power] = text.replace(/[,\s]/g, "").match(/([\d.]+)(?:×10([⁻⁰¹²³⁴-⁹]+))?/);
  const exponent = power ? Number([...power].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹".indexOf(c)).map((i) => (i ? i - 1 : "-")).join("")) : 0;
  return Number(digits) * 10 ** exponent;
};
const texts = (selector) => frame.$$eval(selector, (found) => found.map((one) => one.innerText));
const table = (where = "main") =>
  frame.$$eval(`${where} .table-scroll tbody tr`, (rows) => rows.map((row) => [...row.children].map((cell) => cell.innerText)));

/** Where a step of a layer's strip is on the screen. */
async function strip(layer, step) {
  const name = await frame.locator(".net-name.layer", { has: frame.getByText(layer, { exact: true }) }).boundingBox();
  const column = await frame.locator(".strips-label").first().boundingBox();
  return { x: column.x + Math.min(column.width - 2, ((step - 2) / 1680) * column.width), y: name.y + name.height / 2 };
}
const openLayer = async (hand, layer) => hand.click(await middle(frame.locator(".layer-name", { hasText: layer })), layer);
const asTable = async (hand) => hand.click(await middle(frame.locator(".layer-title .button.small")), "the table's button");
const view = async (hand, name) => hand.click(await middle(frame.getByRole("button", { name, exact: true })), name);

/** Presses arrows until the cursor is at a step; it is where the mouse could point at, one or two records beside it. */
async function toStep(hand, step) {
  for (let presses = 0; presses < 9; presses++) {
    const at = number((await texts(".axis .pill"))[0]);
    if (at === step) return;
    await hand.press(at < step ? "ArrowRight" : "ArrowLeft");
  }
}

/** The layers whose strip has nothing but one colour between two steps. */
async function whole(fill, from, to) {
  const found = [];
  for (const layer of ["conv1", "conv2", "hidden", "logits"]) {
    const [left, right] = [await strip(layer, from), await strip(layer, to)];
    const box = await frame.locator("canvas.strips").first().boundingBox();
    const area = [left.x - box.x, left.y - box.y - 15, right.x - left.x, 30].map(Math.round);
    const same = await frame.$eval(
      "canvas.strips",
      (canvas, [at, swatch]) => {
        const wanted = getComputedStyle(document.querySelector(swatch)).backgroundColor.match(/\d+/g).slice(0, 3).join();
        const { data } = canvas.getContext("2d").getImageData(...at);
        for (let i = 0; i < data.length; i += 4) if (data.slice(i, i + 3).join() !== wanted) return false;
        return true;
      },
      [area, `.legend .fill-${fill}`],
    );
    if (same) found.push(layer);
  }
  return found;
}

/** The table of the channels of conv2: channel, state, delta, last moved, first held, violated. */
async function channels(hand) {
  await openLayer(hand, "conv2");
  await asTable(hand);
  await hand.see(frame.locator("main .table-scroll tbody tr").last(), "the end of the table");
  return table();
}

const values = () => {
  throw new No("it records norms of channels and shares, not weights");
};

export const questions = {
  1: () => whole("frozen", 400, 1000),
  async 2(hand) {
    await openLayer(hand, "conv1");
    const change = (to) => frame.locator(".inspector .changes li", { hasText: to }).first();
    const steps = [];
    for (const to of ["→ frozen", "frozen →"]) {
      await hand.see(change(to), `"${to}" in the list of changes`);
      steps.push(number(await change(to).innerText()));
    }
    return steps;
  },
  async 3(hand) {
    await openLayer(hand, "conv1");
    await asTable(hand);
    await hand.choose(frame.locator("select.sort"), "Sort: final Δ", "the order");
    const moving = [];
    for (const layer of ["conv1", "conv2", "hidden", "logits"]) {
      if (layer !== "conv1") await hand.click(await middle(frame.locator(".layer-title .joined button").last()), "the next layer");
      const [first] = await table();
      if (number(first[2]) >= 1e-4) moving.push(layer);
    }
    return moving;
  },
  async 4(hand) {
    await openLayer(hand, "hidden");
    const label = (await texts(".gutter-label")).find((text) => text.includes("quiet"));
    return number(label);
  },
  async 5(hand) {
    await openLayer(hand, "conv2");
    const label = frame.locator(".gutter-number", { hasText: /^5$/ });
    const heat = await frame.locator(".heat-plot").boundingBox();
    await hand.click({ x: heat.x + ((300 - 2) / 1680) * heat.width, y: (await middle(label)).y }, "the row of channel 5, at 300");
    await toStep(hand, 300);
    return number((await texts(".inspector .metrics dd"))[0]);
  },
  async 6(hand) {
    const held = (await channels(hand)).filter(([, state]) => state === "pruned");
    const first = Math.min(...held.map((row) => number(row[4])));
    return [held.filter((row) => number(row[4]) === first).map(([channel]) => Number(channel)), first];
  },
  async 7(hand) {
    const held = (await channels(hand)).filter(([, state]) => state === "pruned");
    return [...new Set(held.map((row) => number(row[4])))];
  },
  async 8(hand) {
    await openLayer(hand, "conv2");
    const pruned = number((await texts(".gutter-label")).find((text) => text.includes("pruned")));
    const numbers = (await texts(".gutter-number")).map(Number);
    return numbers.length === 32 ? numbers.slice(0, 32 - pruned) : null;
  },
  async 9() {
    return number((await texts(".two.weights"))[0]) / 100;
  },
  async 10(hand) {
    await hand.point(await strip("hidden", 1680), "the end of the strip of hidden");
    return number((await texts(".tip-weights b"))[0]) / 100;
  },
  async 11(hand) {
    await hand.press("v");
    return [...new Set((await table("dialog.audit")).map((row) => `${row[2]}/${row[3]}`))];
  },
  async 12(hand) {
    await hand.press("v");
    const rows = await table("dialog.audit");
    return [Math.min(...rows.map((row) => number(row[0]))), [...new Set(rows.map((row) => row[7]))].join()];
  },
  async 13(hand) {
    await view(hand, "Compare");
    await hand.click(await middle(frame.locator(".lap-rows").getByRole("button", { name: "conv2", exact: true })), "conv2");
    await hand.click(await middle(frame.getByRole("button", { name: "View the channels as a table" })), "the table's button");
    await hand.see(frame.locator("main .table-scroll tbody tr").last(), "the end of the table");
    const rows = await table();
    return rows.filter(([, a, b]) => a !== "pruned" && b === "pruned").map(([channel]) => Number(channel));
  },
  async 14(hand) {
    await view(hand, "Compare");
    const row = await frame.locator(".lap-rows .lap", { hasText: "hidden" }).innerText();
    return row.match(/([\d.]+) \/ ([\d.]+)/).slice(1).map(Number);
  },
  async 15(hand) {
    await view(hand, "Function");
    const plot = await frame.locator(".fn-lines-body canvas").boundingBox();
    await hand.click({ x: plot.x + ((800 - 2) / 1680) * plot.width, y: plot.y + plot.height / 2 }, "the line of the output, at 800");
    await toStep(hand, 800);
    return number((await texts(".fn-values .number"))[0]);
  },
  16: values,
  17: values,
  18: values,
  19: values,
  20: values,
};
