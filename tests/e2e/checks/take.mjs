// What can be taken away: a link and files.
import { click, goTo, hashOf, NETWORK, openFrame } from "../visit.mjs";

/** Copy link, at a step that was chosen and where the cursor follows the end, and both downloads. */
export async function take({ base, newPage }) {
  const page = await newPage();
  const frame = await openFrame(page, base, { hash: hashOf({ v: "network", s: 7 }) });
  await frame.evaluate(() => {
    Object.defineProperty(navigator, "clipboard", { value: undefined });
    document.execCommand = (command) => {
      window.__copied = [command, document.activeElement.value];
      return true;
    };
  });
  const copied = async () => {
    await click(frame, ".toolbar button:has([class*=icon-link], .icon-check)");
    return frame.evaluate(() => window.__copied);
  };
  const link = await copied();
  await goTo(page, frame, NETWORK);
  const followed = await copied();
  const save = async (label) => {
    await click(frame, ".download > button");
    const waiting = page.waitForEvent("download");
    await frame.click(`.menu button:has-text(${JSON.stringify(label)})`);
    const download = await waiting;
    const chunks = [];
    for await (const chunk of await download.createReadStream()) chunks.push(chunk);
    return { name: download.suggestedFilename(), head: Buffer.concat(chunks).subarray(0, 200).toString("latin1") };
  };
  return { link, followed, png: await save("PNG"), csv: await save("CSV of") };
}
