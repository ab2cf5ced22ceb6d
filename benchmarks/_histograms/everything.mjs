// Visits all that a tab has: node everything.mjs theirs|ours BASE. Prints the bytes, and the steps that its pictures hold, as JSON.
import { launch } from "../../frontend/scripts/browser.mjs";
import * as ours from "./ours.mjs";
import * as theirs from "./theirs.mjs";
import { meter, quiet } from "./meter.mjs";

const visits = {
  /** Both pages of cards; one ridge a step. */
  async theirs(page, base) {
    await theirs.open(page, base);
    const ridges = () =>
      page.locator("vz-histogram-timeseries").evaluateAll((charts) =>
        charts.map((chart) => chart.shadowRoot.querySelectorAll("g.histogram").length),
      );
    const steps = await ridges();
    await page.getByRole("button", { name: "Next page" }).last().click();
    await theirs.settled(page);
    return [...steps, ...(await ridges())];
  },
  /** The network, each layer of each run, the layers of the pair, the function. */
  async ours(page, base) {
    const frame = await ours.open(page, base);
    const press = async (key) => {
      await page.keyboard.press(key);
      await ours.settled();
    };
    const open = async (name) => {
      await frame.getByRole("button", { name, exact: true }).click();
      await ours.settled();
    };
    const steps = [];
    await open("Layer");
    for (const run of ["[", "]"]) {
      await press(run);
      for (let layer = 0; layer < 4; layer++) {
        const [, shown] = (await frame.locator(".under-panel").innerText()).match(/([\d,]+) of [\d,]+ records? shown/);
        steps.push(Number(shown.replace(",", "")));
        await press(run === "[" ? "j" : "k");
      }
    }
    await open("Compare");
    for (const name of await frame.locator(".lap-rows button").all()) {
      await name.click();
      await ours.settled();
    }
    await open("Function");
    return steps;
  },
};

const [tab, base] = process.argv.slice(2);
const browser = await launch();
const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
const seen = await meter(page);
const steps = await visits[tab](page, base);
await quiet(page, seen);
await browser.close();
console.log(JSON.stringify({ steps, bytes: seen.plugin }));
