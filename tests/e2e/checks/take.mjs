// What can be taken away: a link and files.
import { openTab } from "../../../frontend/scripts/browser.mjs";
import { click } from "../visit.mjs";

/** Copy link and both downloads. */
export async function take({ base, newPage }) {
  const page = await newPage();
  const frame = await openTab(page, base, { hash: "&p.pastnet.s=7" });
  await frame.evaluate(() => {
    Object.defineProperty(navigator, "clipboard", { value: undefined });
    document.execCommand = (command) => {
      window.__copied = [command, document.activeElement.value];
      return true;
    };
  });
  await click(frame, ".toolbar button:has-text('Copy link')");
  const link = await frame.evaluate(() => window.__copied);
  const save = async (label) => {
    await click(frame, ".download > button");
    const waiting = page.waitForEvent("download");
    await frame.click(`.menu button:has-text(${JSON.stringify(label)})`);
    const download = await waiting;
    const chunks = [];
    for await (const chunk of await download.createReadStream()) chunks.push(chunk);
    return { name: download.suggestedFilename(), head: Buffer.concat(chunks).subarray(0, 200).toString("latin1") };
  };
  return { link, png: await save("PNG"), csv: await save("CSV of dense") };
}
