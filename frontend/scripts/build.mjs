// Builds the page into the Python package. The same sources give the same bytes: no times, no paths, no source map.
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { css } from "./css.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const LIMIT = 60 * 1024;

const outfile = process.argv[2] ?? join(root, "../tb_pastnet/serve/static/index.js");
await build({
  absWorkingDir: root,
  entryPoints: ["src/index.ts"],
  outfile,
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  charset: "utf8",
  jsx: "transform",
  jsxFactory: "__h",
  jsxFragment: "__fragment",
  inject: ["scripts/jsx.mjs"],
  // The compiler's own settings ask for the automatic runtime and would go before.
  tsconfigRaw: "{}",
  legalComments: "none",
  define: { "process.env.NODE_ENV": '"production"' },
  plugins: [css],
  logLevel: "warning",
});
const size = gzipSync(await readFile(outfile), { level: 9 }).length;
console.log(`index.js: ${(size / 1024).toFixed(1)} KB gz of ${LIMIT / 1024} KB`);
if (size > LIMIT) {
  console.error(`Could not accept the bundle: expected at most ${LIMIT} bytes gz, got ${size}.`);
  process.exit(1);
}
