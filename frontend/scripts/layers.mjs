// Reads the imports of the page: each room may use itself and the rooms before it, no view uses another, nothing goes in a
// circle, and what is drawn (columns) is read only where it is drawn.
import { readdir, readFile } from "node:fs/promises";
import { dirname, join, normalize, relative } from "node:path";
import { fileURLToPath } from "node:url";

const SRC = join(dirname(fileURLToPath(import.meta.url)), "../src");
/** From the bottom up. */
const ROOMS = ["host.ts", "server", "data", "draw", "state", "parts", "views", "style", "shell", "page.ts", "index.ts"];
/** Modules that only some rooms may import. */
const ONLY = { "draw/columns.ts": ["draw", "state/answers.ts"] };

const roomOf = (path) => path.split("/")[0];
const files = (await readdir(SRC, { recursive: true })).filter(
  (path) => /\.tsx?$/.test(path) && !path.endsWith(".d.ts"),
);
const known = new Set(files);

/** The modules of the page that one imports, at once or later. */
async function importsOf(path) {
  const text = await readFile(join(SRC, path), "utf8");
  const specs = [...text.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)].map((match) => match[1]);
  const bases = specs.map((spec) => normalize(join(dirname(path), spec)));
  return bases.flatMap(
    (base) => ["", ".ts", ".tsx", "/index.ts"].map((end) => base + end).find((name) => known.has(name)) ?? [],
  );
}

const graph = new Map();
for (const path of files) graph.set(path, await importsOf(path));

const faults = [];
for (const [path, imports] of graph) {
  const own = roomOf(path);
  for (const other of imports) {
    const room = roomOf(other);
    if (ROOMS.indexOf(own) < 0) faults.push(`${path} is in no room of ${relative(".", SRC)}`);
    if (ROOMS.indexOf(room) > ROOMS.indexOf(own))
      faults.push(`${path} (${own}) uses ${other} (${room}), which is above it`);
    const [view, otherView] = [path, other].map((name) => name.split("/")[1]);
    if (
      own === "views" &&
      room === "views" &&
      other.split("/").length > 2 &&
      view !== otherView &&
      path !== "views/index.ts"
    )
      faults.push(`${path}: a view uses another, ${other}`);
    const allowed = ONLY[other];
    if (allowed && !path.includes(".test.") && !allowed.some((name) => name === own || name === path))
      faults.push(`${path} reads ${other}, which is only for ${allowed.join(", ")}`);
  }
}

/** Walks depth first; a module that is met again on the way is a circle. */
const state = new Map();
function walk(path, way) {
  if (state.get(path) === "done") return;
  if (state.get(path) === "open") {
    faults.push(`circle: ${[...way.slice(way.indexOf(path)), path].join(" → ")}`);
    return;
  }
  state.set(path, "open");
  for (const other of graph.get(path)) walk(other, [...way, path]);
  state.set(path, "done");
}
for (const path of files) walk(path, []);

for (const fault of [...new Set(faults)].sort()) console.error(fault);
if (faults.length > 0) process.exit(1);
console.log(`${files.length} modules, layered, 0 circles`);
