// What the page shows at an address, word by word: the numbers are counted anew from weights in tests/oracle.
import { idle } from "../../../frontend/scripts/browser.mjs";
import { click, goTo, hashOf, openFrame, painted, rows } from "../visit.mjs";

const HEIGHT = 1000;

const table = async (frame, place, button) => {
  await click(frame, button);
  const caption = await frame.$eval(`${place} caption`, (one) => one.textContent);
  const head = await frame.$$eval(`${place} thead th`, (all) => all.map((one) => one.textContent));
  const body = await rows(frame, place);
  await click(frame, `${place} .button.small[aria-pressed=true]`);
  return { caption, head, rows: body };
};

/** Heads, bars, legend and dots, and the step on the axis. */
const words = (frame) =>
  frame.evaluate(() => {
    const said = (from, selector) => from.querySelector(selector)?.textContent ?? null;
    return {
      heads: [...document.querySelectorAll(".run-head")].map((head) => ({
        run: head.title,
        seen: head.querySelector(".bar") !== null,
        two: said(head, ".two:not(.weights)"),
        weights: said(head, ".two.weights b"),
        whole: head.querySelector(".two.weights")?.title ?? null,
        bar: head.querySelector(".bar")?.getAttribute("aria-label"),
      })),
      pill: said(document, ".run-head .pill"),
      legend: {
        title: said(document, "[aria-label='Channel states'] summary .sub"),
        items: [...document.querySelectorAll(".legend li")].map((one) => [
          one.querySelector(".legend-text").firstChild.textContent,
          one.querySelector(".number").textContent,
        ]),
      },
      dots: {
        label: document.querySelector(".dots-column canvas").getAttribute("aria-label"),
        head: said(document, ".dots-head .two"),
      },
    };
  });

/** Brings a run's column into sight. */
async function bring(frame, run) {
  await frame.evaluate((wanted) => {
    const head = [...document.querySelectorAll(".run-head")].find((one) => one.title === wanted);
    head.scrollIntoView({ inline: "center", block: "nearest" });
  }, run);
  await painted(frame);
}

/** Points at a row of a run's column where a step is, and reads the tooltip. */
async function tip(page, frame, { run, layer, step, range: [from, to] }) {
  await bring(frame, run);
  const at = await frame.evaluate(
    ([wanted, row, share]) => {
      const heads = [...document.querySelectorAll(".run-head")];
      const place = heads.findIndex((head) => head.title === wanted);
      const column = document.querySelectorAll(".run-column")[place].getBoundingClientRect();
      const names = [...document.querySelectorAll(".net-name.layer")];
      const name = names
        .find((one) => one.querySelector("button").title.startsWith(`${row}: `))
        .getBoundingClientRect();
      const width = Number.parseFloat(document.querySelector(".strips-label").style.width);
      window.pointed = null;
      addEventListener("pointermove", (event) => (window.pointed = event.clientX - column.left), { once: true });
      return { x: column.left + share * width, y: name.top + name.height / 2, width };
    },
    [run, layer, (step + 0.5 - from) / (to - from)],
  );
  const frameBox = await (await frame.frameElement()).boundingBox();
  await page.mouse.move(frameBox.x + at.x, frameBox.y + at.y);
  await frame.waitForFunction(() => window.pointed !== null);
  await painted(frame);
  const found = await frame.evaluate(() => {
    const texts = (selector) => [...document.querySelectorAll(`.tooltip ${selector}`)].map((one) => one.textContent);
    return {
      title: texts(".tip-title"),
      run: texts(".tip-run"),
      rows: [...document.querySelectorAll(".tooltip .tip-row")].map((row) =>
        [...row.querySelectorAll("span, b")].map((one) => one.textContent),
      ),
      foot: texts(".tip-foot b"),
      weights: texts(".tip-weights .number"),
      apart: texts(".tip-apart b"),
    };
  });
  const { heads, pill, legend } = await words(frame);
  const x = await frame.evaluate(() => window.pointed);
  await page.mouse.move(1, 1);
  await idle(frame);
  return { ...found, x, width: at.width, heads, pill, legend };
}

const overlaps = (frame) =>
  frame.$$eval(".lap", (all) =>
    all.map((lap) => [lap.querySelector("bdi").textContent, lap.querySelector(":scope > span").textContent]),
  );

/** A line for each run that a finding is of. */
const findings = (frame) =>
  frame.$$eval(".finding", (all) =>
    all.flatMap((line) => {
      const runs = [...line.querySelectorAll(".finding-run > span")].map(({ title }) => title);
      const [text, step] = [".finding-text", ".number"].map((part) => line.querySelector(part).textContent.trim());
      return (runs.length > 0 ? runs : [line.querySelector(".finding-run").textContent]).map((run) => [run, text, step]);
    }),
  );

const resize = async (page, frame, width) => {
  await page.setViewportSize({ width, height: HEIGHT });
  await painted(frame);
  await painted(frame);
};

/** All views at some addresses, at each of some widths. */
export async function oracleNumbers({ base, newPage }, { widths, cases }) {
  const page = await newPage({ width: widths[0], height: HEIGHT });
  const frame = await openFrame(page, base);
  const found = [];
  for (const width of widths) {
    await resize(page, frame, width);
    found.push(await numbersAt(page, frame, cases));
  }
  await page.close();
  return found;
}

async function numbersAt(page, frame, cases) {
  const found = [];
  for (const one of cases) {
    const { run, other, step, threshold: th, measure, unit, mask } = one;
    const place = { v: "network", s: step, r: run, th };
    await goTo(page, frame, hashOf(place));
    const network = await words(frame);
    const tooltip = await tip(page, frame, one);
    const networkTable = await table(frame, ".network", ".net-title .button.small");
    await goTo(page, frame, hashOf({ ...place, d: measure, b: other, vs: 1 }));
    const versus = await words(frame);
    const apart = await tip(page, frame, one);
    const versusTable = await table(frame, ".network", ".net-title .button.small");
    await goTo(page, frame, hashOf({ v: "compare", s: step, r: run, r2: other, th, u: unit, mk: mask }));
    const laps = await overlaps(frame);
    const lapsTable = await table(frame, ".laps-part", ".laps-part .panel-line .small");
    await goTo(page, frame, hashOf({ v: "findings", th }));
    found.push({
      network: { ...network, tip: tooltip, table: networkTable },
      versus: { ...versus, tip: apart, table: versusTable },
      compare: { laps, table: lapsTable },
      findings: await findings(frame),
    });
  }
  return found;
}

/** Where the strips of the layers have certain colours: of each layer and run the pixels across. */
export async function oraclePixels({ base, newPage }, { widths, colours, th }) {
  const page = await newPage({ width: widths[0], height: HEIGHT });
  const frame = await openFrame(page, base, { hash: hashOf({ v: "network", th }) });
  const found = {};
  for (const width of widths) {
    await resize(page, frame, width);
    const runs = await frame.$$eval(".run-head", (all) => all.map((head) => head.title));
    found[width] = [];
    for (const [place, run] of runs.entries()) {
      await bring(frame, run);
      found[width].push(
        ...(await frame.evaluate(
          ([at, name, wanted]) => {
            const canvas = document.querySelector("canvas.strips");
            const column = document.querySelectorAll(".run-column")[at];
            const across = Number.parseFloat(column.querySelector(".strips-label").style.width);
            const left = column.offsetLeft - canvas.offsetLeft;
            const lines = [...document.querySelectorAll(".net-name.layer")];
            return lines.map((line) => {
              const top = line.offsetTop + Number.parseFloat(line.style.paddingTop) + 1 - canvas.offsetTop;
              const height = line.querySelector(".net-name-line").clientHeight - 2;
              const { data } = canvas.getContext("2d").getImageData(left, top, across, height);
              const seen = Object.fromEntries(Object.keys(wanted).map((kind) => [kind, new Set()]));
              for (let i = 0; i < data.length; i += 4) {
                if (data[i + 3] === 0) continue;
                const pixel = (data[i] << 16) | (data[i + 1] << 8) | data[i + 2];
                for (const kind in wanted) if (wanted[kind] === pixel) seen[kind].add((i / 4) % across);
              }
              return {
                run: name,
                layer: line.querySelector("button").title.split(": ")[0],
                width: across,
                seen: Object.fromEntries(Object.entries(seen).map(([kind, all]) => [kind, [...all]])),
              };
            });
          },
          [place, run, colours],
        )),
      );
    }
  }
  await page.close();
  return found;
}
