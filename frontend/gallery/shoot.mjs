// Screenshots of the gallery: node gallery/shoot.mjs BASE OUT.png [--dark] [--size 1440x900] [--scenario mock] [--hash '&p.pastnet.v=layer']
// [--press keys,comma,separated] [--click selector] [--hover x,y]
import { idle } from "../scripts/browser.mjs";
import { takePicture } from "./camera.mjs";

await takePicture(
  async (page, base, { scenario, dark, hash }) => {
    const start = performance.now();
    await page.goto(`${base}/${scenario}/${dark ? "?dark" : ""}#pastnet${hash}`);
    const frame = await (await page.waitForSelector("iframe")).contentFrame();
    await idle(frame);
    console.log(`idle after ${(performance.now() - start).toFixed(0)} ms`);
    return frame;
  },
  { scenario: { type: "string", default: "mock" } },
);
