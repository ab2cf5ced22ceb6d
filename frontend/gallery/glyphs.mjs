// The gallery of glyphs, /glyphs/ of the gallery's server: every glyph of src/draw from a named fixture (glyphs/*.ts),
// at device ratios 1 and 2; ?dark for the dark theme. Tests compare each with its golden picture.
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { css } from "../scripts/css.mjs";

const HTML = `<!doctype html><html lang="en"><head><title>Glyphs</title></head><body><script type="module" src="page.js"></script></body></html>`;

/** The fixtures as one script. It is no part of the product's bundle. */
async function bundle() {
  const entry = join(dirname(fileURLToPath(import.meta.url)), "glyphs/page.ts");
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: "esm",
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
    plugins: [css],
    logLevel: "warning",
  });
  return outputFiles[0].contents;
}

/** Type and body of a file under /glyphs/, built anew each time, or null. */
export async function glyphs(path) {
  if (path === "") return ["text/html; charset=utf-8", HTML];
  return path === "page.js" ? ["text/javascript; charset=utf-8", await bundle()] : null;
}
