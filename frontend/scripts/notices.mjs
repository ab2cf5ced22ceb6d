// The licenses of the packages that are bundled, for whoever gets the page without node_modules.
import { readFile } from "node:fs/promises";
import { join } from "node:path";

const PACKAGE = /^(.*node_modules\/((?:@[^/]+\/)?[^/]+))\//;

/** The text of the notices: each bundled package with its version, its address and its license, by name. */
export async function notices(metafile, root) {
  const folders = new Map();
  for (const path of Object.keys(metafile.inputs)) {
    const [, folder, name] = path.match(PACKAGE) ?? [];
    if (name) folders.set(name, join(root, folder));
  }
  const parts = ["The page of tb_pastnet contains these packages.\n"];
  for (const [name, folder] of [...folders].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const { version, homepage } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const license = await readFile(join(folder, "LICENSE"), "utf8");
    parts.push(`${name} ${version}, ${homepage}\n\n${license.trim()}\n`);
  }
  return parts.join(`\n${"=".repeat(80)}\n\n`);
}
