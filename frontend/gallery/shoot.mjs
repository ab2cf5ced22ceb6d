// Screenshots of the gallery: node gallery/shoot.mjs BASE OUT.png [--dark] [--size 1440x900] [--scenario mock] [--hash '&p.pastnet.v=layer']
// [--press keys,comma,separated] [--click selector] [--hover x,y]
import { openGallery } from "../scripts/browser.mjs";
import { takePicture } from "./camera.mjs";

await takePicture(
  async (page, base, { scenario, dark, hash }) => {
    const start = performance.now();
    const frame = await openGallery(page, base, scenario, { hash, dark });
    console.log(`idle after ${(performance.now() - start).toFixed(0)} ms`);
    return frame;
  },
  { scenario: { type: "string", default: "mock" } },
);
