// One browser for many checks, and another for pictures that are compared. Reads lines of JSON {base, check, arguments}
// and answers each with a line: what the check saw, or why it failed. A check is an exported function in checks/; the
// Python tests judge what it gives. Nothing sleeps: the page says when it is idle.
import { readdir } from "node:fs/promises";
import { createInterface } from "node:readline";
import { launch } from "../../frontend/scripts/browser.mjs";
import { visit } from "./visit.mjs";

const folder = new URL("./checks/", import.meta.url);
const checks = {};
for (const file of (await readdir(folder)).filter((name) => name.endsWith(".mjs"))) {
  for (const [name, check] of Object.entries(await import(new URL(file, folder)))) {
    if (Object.hasOwn(checks, name)) throw new Error(`two checks are called ${name}`);
    checks[name] = check;
  }
}

const LONGEST = 600_000;

/** A check that hangs fails; one on a busy machine, or one that was halted for a while, does not. */
async function inTime(work) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done after ${LONGEST / 1000} s`)), LONGEST);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
/** Checks whose pictures hold text. */
const PAINTED = ["glyphs", "views"];
const browsers = {};
const browserOf = (check) => {
  const light = !PAINTED.includes(check);
  browsers[light] ??= launch({ light });
  return browsers[light];
};
try {
  for await (const line of createInterface({ input: process.stdin })) {
    const { base, check, arguments: given } = JSON.parse(line);
    const stay = visit(await browserOf(check), base, (told) => say({ told }));
    try {
      if (!Object.hasOwn(checks, check)) throw new Error(`there is no check ${check}`);
      const result = await inTime(checks[check](stay, given));
      say({ ...stay.seen, result });
    } catch (error) {
      say({ failed: String(error.stack), ...stay.seen });
    } finally {
      await stay.leave();
    }
  }
} finally {
  for (const browser of Object.values(browsers)) await (await browser).close();
}
