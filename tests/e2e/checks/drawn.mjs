// The colours of pictures at the cursor, to be compared with the numbers beside them.
import { click, goTo, hashOf, NETWORK, openFrame, rows, text } from "../visit.mjs";

/** Gives the frame what the checks read with. */
const prepare = (frame) =>
  frame.evaluate(() => {
    window.drawn = {
      /** Hex colours of a canvas in a column, from the top; "" where it is transparent. */
      colours(canvas, x, top, height) {
        const ratio = canvas.width / canvas.clientWidth;
        const box = [x, top, 1 / ratio, height].map((side) => Math.max(0, Math.floor(side * ratio)));
        const { data } = canvas.getContext("2d").getImageData(box[0], box[1], 1, Math.max(1, box[3]));
        const hex = (at) => `#${[0, 1, 2].map((part) => data[at + part].toString(16).padStart(2, "0")).join("")}`;
        return Array.from({ length: data.length / 4 }, (_, i) => (data[4 * i + 3] === 0 ? "" : hex(4 * i)));
      },
      /** Just inside the record at the crosshair. */
      place: (panel) =>
        new DOMMatrix(getComputedStyle(panel.querySelector(".crosshair, .crosshairs")).transform).e + 1.5,
    };
  });

/** Each strip of the Network view at the cursor: its row, its run and its colours. */
const strips = (frame) =>
  frame.evaluate(() => {
    const { colours, place } = window.drawn;
    const x = place(document.querySelector(".net-body"));
    const runs = [...document.querySelectorAll(".run-head")].map((head) => head.title);
    const found = [];
    const canvas = document.querySelector("canvas.strips");
    document.querySelectorAll(".run-column").forEach((column, run) => {
      const left = column.offsetLeft - canvas.offsetLeft;
      for (const name of document.querySelectorAll(".net-name")) {
        const total = name.classList.contains("total");
        const top = name.offsetTop + Number.parseFloat(name.style.paddingTop) + (total ? 0 : 1) - canvas.offsetTop;
        const height = name.querySelector(".net-name-line").clientHeight - (total ? 0 : 2);
        found.push([name.querySelector("bdi, b").textContent, runs[run], colours(canvas, left + x, top, height)]);
      }
    });
    return found;
  });

/** Strips at some steps. */
export async function drawnNetwork({ base, newPage }, { steps, hash = {} }) {
  const page = await newPage();
  const frame = await openFrame(page, base, { hash: NETWORK });
  await prepare(frame);
  const found = {};
  for (const step of steps) {
    await goTo(page, frame, hashOf({ v: "network", ...hash, s: step }));
    found[step] = await strips(frame);
  }
  return found;
}

/** Each channel of the heatmap at the cursor, and the table. */
export async function drawnLayer({ base, newPage }, { step, layer, run }) {
  const page = await newPage();
  const frame = await openFrame(page, base, {
    hash: hashOf({ v: "layer", l: layer, r: run, s: step, m: "state", o: "index" }),
  });
  await prepare(frame);
  const colours = await frame.evaluate(() => {
    const { colours: column, place } = window.drawn;
    const plot = document.querySelector(".heat-plot");
    const canvas = [...plot.querySelectorAll("canvas")].pop();
    return column(canvas, place(plot), 0, canvas.clientHeight);
  });
  await click(frame, ".layer-title .button.small");
  return { colours, table: await rows(frame, ".layer-panel") };
}

/** Overlaps as colours, as the numbers beside them, and in the tables. */
export async function drawnCompare({ base, newPage }, { step, runs }) {
  const page = await newPage();
  const frame = await openFrame(page, base, {
    hash: hashOf({ v: "compare", r: runs[0], r2: runs[1], s: step, u: "channels", mk: "trainable" }),
  });
  await prepare(frame);
  const layers = await frame.evaluate(() => {
    const { colours, place } = window.drawn;
    const plot = document.querySelector(".lap-plot");
    const canvas = plot.querySelector("canvas");
    return [...document.querySelectorAll(".lap")].map((lap) => {
      const middle = lap.offsetTop + lap.clientHeight / 2 - canvas.offsetTop;
      return [
        lap.querySelector("bdi").textContent,
        lap.querySelector(":scope > span").textContent,
        colours(canvas, place(plot), middle, 1)[0],
      ];
    });
  });
  const cells = await frame.$$eval(".matrix tbody td[style*=background]", (all) =>
    all.map((cell) => [cell.textContent, getComputedStyle(cell).backgroundColor]),
  );
  await click(frame, ".laps-part .panel-line .small");
  return { layers, cells, table: await rows(frame, ".laps-part") };
}

/** Changes of outputs as colours and in the table, at some steps. */
export async function drawnFunction({ base, newPage }, { steps, run }) {
  const page = await newPage({ height: 1200 });
  const frame = await openFrame(page, base, { hash: hashOf({ v: "function", r: run }) });
  await prepare(frame);
  const found = [];
  for (const step of steps) {
    await goTo(page, frame, hashOf({ v: "function", r: run, s: step }));
    const colours = await frame.evaluate(() => {
      const { colours: column, place } = window.drawn;
      const plot = document.querySelector(".fn-cells .fn-plot");
      const canvas = plot.querySelector("canvas");
      return [...document.querySelectorAll(".fn-names button")].map((name) => {
        const middle = name.offsetTop + name.clientHeight / 2 - canvas.offsetTop;
        return [name.title.split(": ")[0], column(canvas, place(plot), middle, 1)[0]];
      });
    });
    await click(frame, ".fn-cells header .small");
    found.push({ colours, head: await text(frame, ".fn-cells thead th"), table: await rows(frame, ".fn-cells") });
    await click(frame, ".fn-cells header .small");
  }
  return found;
}
