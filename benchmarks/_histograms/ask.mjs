// Asks the twenty questions of one tab: node ask.mjs theirs|ours BASE [numbers]. Prints the actions and the answers as JSON.
import { launch } from "../../frontend/scripts/browser.mjs";
import { Hand, No } from "./hand.mjs";

const [tab, base, only = ""] = process.argv.slice(2);
const { open, questions, settled } = await import(`./${tab}.mjs`);
const browser = await launch();
const found = {};
for (const [number, ask] of Object.entries(questions)) {
  if (only && !only.split(",").includes(number)) continue;
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  try {
    await open(page, base);
    const hand = new Hand(page, () => settled(page));
    const answer = await ask(hand);
    found[number] = { answer, actions: hand.actions };
  } catch (error) {
    if (!(error instanceof No)) throw error;
    found[number] = { no: error.message };
  } finally {
    await page.close();
  }
}
await browser.close();
console.log(JSON.stringify(found));
