// The gallery of glyphs: every glyph of src/draw from a named fixture (glyphs/*.ts), at device ratios 1 and 2; ?dark for
// the dark theme. Tests compare each with its golden picture. `node gallery/glyphs.mjs [port]` shows it to people.
import { createServer } from "node:http";
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

/** Type and body of a file of the gallery, built anew each time, or null. */
export async function glyphs(path) {
  if (path === "") return ["text/html; charset=utf-8", HTML];
  return path === "page.js" ? ["text/javascript; charset=utf-8", await bundle()] : null;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const server = createServer(async (request, response) => {
    const found = await glyphs(new URL(request.url, "http://localhost").pathname.slice(1));
    response.writeHead(found ? 200 : 404, found ? { "Content-Type": found[0] } : {}).end(found?.[1]);
  });
  server.listen(Number(process.argv[2] ?? 8790), "127.0.0.1", () =>
    console.log(`http://127.0.0.1:${server.address().port}/`),
  );
}
