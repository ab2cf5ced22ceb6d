// Finds a Chromium: $CHROMIUM, then the names of Linux distributions on PATH, then the npm package @sparticuz/chromium
// where somebody has installed it (it is no dependency: 60 MB that most machines have already). Chromium's headless shell
// has less to do, but hints text otherwise: whoever compares no pictures of text may take it.
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { chromium } from "playwright-core";

const SHELL = ["chromium-headless-shell"];
const NAMES = ["chromium", "chromium-browser", "google-chrome"];
const FLAGS = ["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb"];

function onPath(names) {
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    for (const name of names) {
      const file = join(folder, name);
      try {
        accessSync(file, constants.X_OK);
        return file;
      } catch {
        // not here
      }
    }
  }
  return null;
}

/** Starts a headless Chromium of whichever kind is there, the light one if asked to and if there is one. */
export async function launch({ light = false } = {}) {
  const executablePath = (light && onPath(SHELL)) || process.env.CHROMIUM || onPath(NAMES);
  if (executablePath) return chromium.launch({ executablePath, args: FLAGS });
  const packaged = await import("@sparticuz/chromium").then(
    (module) => module.default,
    () => {
      throw new Error(
        `Could not start Chromium: expected $CHROMIUM, or one of ${NAMES.join(", ")} on the PATH, got none. ` +
          "Install Chromium, or @sparticuz/chromium from npm.",
      );
    },
  );
  return chromium.launch({ executablePath: await packaged.executablePath(), args: [...packaged.args, ...FLAGS] });
}

/** Waits until nothing is under way in the frame of the page; while it is being loaded it has no root element. */
export async function idle(frame) {
  await frame.waitForFunction(() => document.documentElement?.dataset.pastnetIdle === "true", null, {
    timeout: 180_000,
  });
}

/** Opens the tab in a running TensorBoard and gives its frame, idle. */
export async function openTab(page, base, { hash = "", dark = false } = {}) {
  if (dark)
    await page.addInitScript(() => localStorage.setItem("_tb_global_settings", JSON.stringify({ theme: "dark" })));
  await page.goto(`${base}/#pastnet${hash}`);
  const frame = await (await page.waitForSelector('iframe[src*="name=pastnet"]')).contentFrame();
  await idle(frame);
  return frame;
}

/** What axe finds against WCAG A and AA in a frame: rule and the elements, nothing where all is well. */
export async function axe(frame) {
  const { readFile } = await import("node:fs/promises");
  const { createRequire } = await import("node:module");
  const source = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  await frame.evaluate(source);
  return frame.evaluate(async () => {
    const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
    const { violations } = await window.axe.run(document, { runOnly: tags });
    return violations.map(
      (rule) => `${rule.id}: ${rule.nodes.map((node) => `${node.target} ${node.failureSummary}`).join(" | ")}`,
    );
  });
}
