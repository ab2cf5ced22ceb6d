// The twenty questions, asked of TensorBoard's Histograms tab. What has to be read off a picture is read off its elements:
// more exactly than eyes do it.
import { middle, No } from "./hand.mjs";

const FILTER = "tf-tag-filterer paper-input input";
const CARD = "tf-histogram-loader";

/** Opens the tab and waits for the histograms on the screen. */
export async function open(page, base) {
  await page.goto("about:blank");
  await page.goto(`${base}/#histograms`);
  await settled(page);
}

/** All cards have drawn, and the page has stood still for some frames. */
export async function settled(page) {
  await page.waitForFunction(
    () => {
      const inside = (node, tag) => [
        ...node.querySelectorAll(tag),
        ...[...node.querySelectorAll("*")].flatMap((one) => (one.shadowRoot ? inside(one.shadowRoot, tag) : [])),
      ];
      const cards = inside(document, "vz-histogram-timeseries");
      const picture = cards.map((card) => card.shadowRoot.querySelector("svg").innerHTML);
      const same = JSON.stringify(picture) === window.__before;
      window.__same = same ? (window.__same ?? 0) + 1 : 0;
      window.__before = JSON.stringify(picture);
      return cards.length > 0 && picture.every((svg) => svg.includes("outline")) && window.__same > 12;
    },
    null,
    { timeout: 60_000 },
  );
}

/** The ridges of a card: step, counts of its bins, and where each bin is on the screen. */
async function ridges(page, tag, run) {
  for (const card of await page.locator(CARD).all()) {
    if (!(await card.evaluate((one, [t, r]) => one.tag === t && one.run === r, [`digits/${tag}`, run]))) continue;
    return card.locator("vz-histogram-timeseries").evaluate((chart) => {
      const svg = chart.shadowRoot.querySelector("svg");
      return [...svg.querySelectorAll("g.histogram")].map((ridge) => {
        const outline = ridge.querySelector("path.outline");
        const matrix = outline.getScreenCTM();
        const points = [...outline.getAttribute("d").matchAll(/[ML]([-\d.e]+),([-\d.e]+)/g)].slice(1, -1);
        const { step, bins } = ridge.__data__;
        return {
          step,
          bins: bins.map(({ x, dx, y }) => ({ from: x, to: x + dx, count: y })),
          // as drawn, in pixels: what an eye could see of it
          drawn: points.map(([, , y]) => Number(y) * matrix.d),
          screen: points.map(([, x, y]) => {
            const { x: left, y: top } = new DOMPoint(Number(x), Number(y)).matrixTransform(matrix);
            return { x: left, y: top };
          }),
        };
      });
    });
  }
  throw new Error(`Could not find the histogram of ${tag} in ${run}: expected it on the page.`);
}

/** What stands at the axes and at the pointer: the value, the step and the count. */
async function labels(page, tag, run) {
  for (const card of await page.locator(CARD).all()) {
    if (!(await card.evaluate((one, [t, r]) => one.tag === t && one.run === r, [`digits/${tag}`, run]))) continue;
    return card.locator("vz-histogram-timeseries").evaluate((chart) => {
      const svg = chart.shadowRoot.querySelector("svg");
      const number = (selector) => Number(svg.querySelector(selector)?.textContent.replace(/,/g, "").replace("−", "-"));
      return {
        value: number(".x-axis-hover text"),
        step: number(".y-axis-hover text"),
        count: number(".hover-closest text"),
      };
    });
  }
  return null;
}

const filter = (hand, word) => hand.type(hand.page.locator(FILTER).first(), word, "the filter of tags");
const onlyOne = async (hand) => {
  const box = hand.page.locator("tf-multi-checkbox paper-checkbox").nth(1);
  await hand.click(await middle(box), "the box of seed_1");
};

/** The step of a ridge: a user moves along it until it is the one that the page marks, and that is one action. */
async function stepOf(hand, tag, ridge, what) {
  for (let bin = 0; bin < ridge.bins.length; bin++) {
    const { x, y } = ridge.screen[bin];
    await hand.page.mouse.move(x - 1, y);
    await hand.page.mouse.move(x, y);
    if ((await labels(hand.page, tag, "seed_0")).step === ridge.step) return (await pointAt(hand, tag, ridge, bin, what)).step;
  }
  throw new No(`the ridge of step ${ridge.step} lies behind others`);
}

/** Points at a bin of a ridge, and reads what the labels say there. */
async function pointAt(hand, tag, ridge, bin, what) {
  await hand.point(ridge.screen[bin], what);
  return labels(hand.page, tag, "seed_0");
}

const last = (list) => list[list.length - 1];
const nearest = (list, step) => list.reduce((a, b) => (Math.abs(b.step - step) < Math.abs(a.step - step) ? b : a));
const filled = ({ bins }) => {
  const at = bins.map((_, i) => i).filter((i) => bins[i].count > 0);
  return { low: at[0], high: last(at) };
};
/** Whether two ridges look alike: no point of theirs is further apart than half a pixel. */
const alike = (a, b) => a.drawn.every((y, i) => Math.abs(y - b.drawn[i]) <= 0.5);
const stands = (list, from, to) => {
  const inside = list.filter(({ step }) => step >= from && step <= to);
  return inside.every((ridge) => alike(ridge, inside[0]));
};
/** The bin around zero. */
const zero = ({ bins }) => bins.findIndex(({ from, to }) => from <= 0 && to > 0);

/** The longest row of ridges that look alike. */
function longest(list) {
  let best = [0, 0];
  for (let from = 0, at = 1; at <= list.length; at++) {
    if (at < list.length && alike(list[at], list[from])) continue;
    if (at - from > best[1] - best[0]) best = [from, at];
    from = at;
  }
  return best;
}

async function one(hand, tag) {
  await filter(hand, tag);
  return ridges(hand.page, tag, "seed_0");
}

const KERNELS = ["conv1", "conv2", "hidden", "logits"].map((layer) => `${layer}/kernel`);
const noChannels = () => {
  throw new No("it has histograms of whole variables, no channels");
};

export const questions = {
  async 1(hand) {
    await filter(hand, "kernel");
    await onlyOne(hand);
    const still = [];
    for (const tag of KERNELS) if (stands(await ridges(hand.page, tag, "seed_0"), 400, 1000)) still.push(tag.split("/")[0]);
    return still;
  },
  async 2(hand) {
    const list = await one(hand, "conv1/kernel");
    const [from, to] = longest(list);
    const first = await stepOf(hand, "conv1/kernel", list[from], "the first ridge that stays as it is");
    return [first, await stepOf(hand, "conv1/kernel", list[to], "the first that is another again")];
  },
  3: noChannels,
  4: noChannels,
  5: noChannels,
  6: noChannels,
  async 7(hand) {
    const list = await one(hand, "conv2/kernel");
    // A peak at zero is drawn over two bins where zero lies near their border.
    const share = (ridge) => {
      const at = zero(ridge);
      return ridge.bins.slice(at - 1, at + 2).reduce((sum, { count }) => sum + count, 0) / 4608;
    };
    const steps = [];
    for (let at = 1; at < list.length; at++) {
      if (share(list[at]) - share(list[at - 1]) < 0.05) continue;
      steps.push(await stepOf(hand, "conv2/kernel", list[at], "a ridge with a higher peak at zero"));
    }
    return steps;
  },
  8: noChannels,
  async 9(hand) {
    await filter(hand, "kernel");
    await onlyOne(hand);
    let zeros = 0;
    for (const tag of KERNELS) {
      const ridge = last(await ridges(hand.page, tag, "seed_0"));
      zeros += (await pointAt(hand, tag, ridge, zero(ridge), `the last ridge of ${tag} at zero`)).count;
    }
    return zeros / (144 + 4608 + 8192 + 640);
  },
  async 10(hand) {
    const ridge = last(await one(hand, "hidden/kernel"));
    return (await pointAt(hand, "hidden/kernel", ridge, zero(ridge), "the last ridge at zero")).count / 8192;
  },
  async 11(hand) {
    await filter(hand, "conv1|logits");
    await onlyOne(hand);
    const moved = [];
    const held = { "conv1/kernel": [338, 1092], "conv1/bias": [338, 1092], "logits/kernel": [590, 1680], "logits/bias": [590, 1680] };
    for (const [tag, [from, to]] of Object.entries(held))
      if (!stands(await ridges(hand.page, tag, "seed_0"), from, to)) moved.push(tag);
    return moved;
  },
  12() {
    throw new No("it shows 51 of the steps, and no causes");
  },
  13: noChannels,
  14() {
    throw new No("it shows how many weights are zero, not which");
  },
  15() {
    throw new No("it has no outputs; you would have to log their histograms, too");
  },
  async 16(hand) {
    const ridge = last(await one(hand, "logits/kernel"));
    return (await pointAt(hand, "logits/kernel", ridge, filled(ridge).high, "the right end of the last ridge")).value;
  },
  async 17(hand) {
    const ridge = nearest(await one(hand, "conv2/kernel"), 300);
    await pointAt(hand, "conv2/kernel", ridge, 15, "the ridge next to step 300");
    const at = zero(ridge);
    const sum = (bins) => bins.reduce((total, { count }) => total + count, 0);
    return sum(ridge.bins.slice(at + 1)) > sum(ridge.bins.slice(0, at)) ? "above" : "below";
  },
  async 18(hand) {
    const list = await one(hand, "logits/kernel");
    const ends = [];
    for (const [name, ridge] of [["first", list[0]], ["last", last(list)]])
      for (const [end, bin] of Object.entries(filled(ridge)))
        ends.push((await pointAt(hand, "logits/kernel", ridge, bin, `the ${end} end of the ${name} ridge`)).value);
    return (ends[3] - ends[2]) / (ends[1] - ends[0]);
  },
  async 19(hand) {
    const { bins } = last(await one(hand, "hidden/bias"));
    const total = bins.reduce((sum, { count }) => sum + count, 0);
    const mean = bins.reduce((sum, { from, to, count }) => sum + (count * (from + to)) / 2, 0) / total;
    const square = bins.reduce((sum, { from, to, count }) => sum + count * ((from + to) / 2 - mean) ** 2, 0) / total;
    const far = ({ from, to, count }) => count > 0.5 && Math.abs((from + to) / 2 - mean) > 3 * Math.sqrt(square);
    return bins.some(far);
  },
  async 20(hand) {
    const ridge = nearest(await one(hand, "conv2/kernel"), 300);
    const total = ridge.bins.reduce((sum, { count }) => sum + count, 0);
    const ends = [];
    for (const share of [0.25, 0.75]) {
      let below = 0;
      const bin = ridge.bins.findIndex(({ count }) => (below += count) >= share * total);
      ends.push((await pointAt(hand, "conv2/kernel", ridge, bin, `its ridge next to step 300, a ${share} of it to the left`)).value);
    }
    return ends;
  },
};
