// Builds the page into the Python package: `index.js`, and a part for each view that is loaded when it is first shown. The
// same sources give the same bytes: no times, no paths, no source map.
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { css } from "./css.mjs";
import { notices } from "./notices.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
/** Of what is loaded before the first view can be drawn. */
const LIMIT = 60 * 1024;

const outdir = process.argv[2] ?? join(root, "../tb_pastnet/serve/static");
await mkdir(outdir, { recursive: true });
for (const name of await readdir(outdir)) if (name.endsWith(".js")) await rm(join(outdir, name));
const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: ["src/index.ts"],
  outdir,
  bundle: true,
  splitting: true,
  // The name tells the content: a page that outlives an update of the package gets no part of another build.
  chunkNames: "[name]-[hash]",
  format: "esm",
  target: "es2022",
  minify: true,
  charset: "utf8",
  legalComments: "none",
  define: { "process.env.NODE_ENV": '"production"' },
  plugins: [css],
  metafile: true,
  logLevel: "warning",
});
await writeFile(join(outdir, "notices.txt"), await notices(metafile, root));

const outputs = new Map(Object.entries(metafile.outputs).map(([path, output]) => [basename(path), output]));

/** A file and all that it needs before it runs; the entry asks for the page at once. */
function needed(name, found = new Set()) {
  if (found.has(name)) return found;
  found.add(name);
  for (const { kind, path } of outputs.get(name).imports)
    if (kind === "import-statement" || name === "index.js") needed(basename(path), found);
  return found;
}

// All parts of the first load are asked for at once: the page would ask for what it needs only when it is there.
const entry = join(outdir, "index.js");
const parts = [...needed("index.js")].filter((name) => name !== "index.js");
await writeFile(entry, parts.map((name) => `import("./${name}");`).join("") + (await readFile(entry, "utf8")));

const sizes = new Map();
for (const name of outputs.keys()) sizes.set(name, gzipSync(await readFile(join(outdir, name)), { level: 9 }).length);
const sum = (names) => [...names].reduce((total, name) => total + sizes.get(name), 0);
const first = sum(needed("index.js"));
for (const [name, size] of sizes) console.log(`${name}: ${(size / 1024).toFixed(1)} KB gz`);
console.log(
  `first load: ${(first / 1024).toFixed(1)} KB gz of ${LIMIT / 1024} KB; all: ${(sum(sizes.keys()) / 1024).toFixed(1)} KB`,
);
if (first > LIMIT) {
  console.error(
    `Could not accept the bundle: expected at most ${LIMIT} bytes gz before the first picture, got ${first}.`,
  );
  process.exit(1);
}
