// The page on synthetic data, inside a stand-in for TensorBoard's frame. `node gallery/server.mjs [port]`, then
// http://127.0.0.1:PORT/mock/ (or leak, masks, pair, odd, one, unborn, empty, big, many, hostile; ?dark for the dark
// theme), and every glyph under http://127.0.0.1:PORT/glyphs/.
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { channelAnswer, functionOf, index, layerAnswer, overview, scenarios, violationsAnswer } from "./data.mjs";
import { glyphs } from "./glyphs.mjs";
import { overlapAnswer, overlapLayersAnswer } from "./overlap.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const bundle = process.env.PASTNET_BUNDLE ?? join(here, "../../tb_pastnet/serve/static");
const port = Number(process.argv[2] ?? 8790);

const FRAME_SCRIPT = `import("./index.js").then((m) => void m.render());`;
const sha = (text) => createHash("sha256").update(text).digest("base64");
// TensorBoard's policy, without its unsafe-eval.
const policy = (script) =>
  `default-src 'self';font-src 'self' data:;frame-src 'self';img-src 'self' data: blob:;object-src 'none';` +
  `style-src 'self' https://www.gstatic.com data: 'unsafe-inline';connect-src 'self' data:;script-src 'self' 'sha256-${sha(script)}'`;

const HOST_SCRIPT = `
if (location.search.includes("dark")) document.body.classList.add("dark-mode");
addEventListener("message", (e) => {
  if (e.data !== "experimental.bootstrap") return;
  const port = e.ports[0];
  window.hostPort = port;
  port.onmessage = async (m) => {
    const { type, id, isReply } = JSON.parse(m.data);
    if (isReply) return;
    const runs = (await (await fetch("data/plugin/pastnet/index")).json()).runs.map((r) => r.name);
    port.postMessage(JSON.stringify({ type, id, payload: type.endsWith("GetRuns") ? runs : {}, error: null, isReply: true }));
  };
});
const frame = document.createElement("iframe");
frame.src = "data/plugin_entry.html";
document.querySelector("main").append(frame);`;

const HOST = `<!doctype html><html lang="en"><head><title>Gallery</title><style>
body{margin:0;height:100vh;display:flex;flex-direction:column;font-family:Roboto,sans-serif}
header{height:64px;flex:none;background:#f57c00;color:#fff;display:flex;align-items:center;padding:0 26px;font-size:20px;gap:40px}
.dark-mode header{background:#ef6c00} header small{font-size:14px} main{flex:1;min-height:0} iframe{border:0;width:100%;height:100%}
</style></head><body><header>TensorBoard <small>PASTNET</small></header><main></main><script>${HOST_SCRIPT}</script></body></html>`;
const FRAME = `<!DOCTYPE html><head><base href="plugin/pastnet/" /></head><body><script type="module">${FRAME_SCRIPT}</script></body>`;

const made = new Map();
const scenarioOf = (name) => {
  if (!made.has(name) && Object.hasOwn(scenarios, name)) made.set(name, scenarios[name]());
  return made.get(name);
};

function send(response, status, type, body, headers = {}) {
  response.writeHead(status, { "Content-Type": type, "X-Content-Type-Options": "nosniff", ...headers });
  response.end(body);
}

const packed = new Map();

/** An array's answer as TensorBoard sends it: packed, kept, and not at all to a browser that has it. */
function sendArrays(request, response, make) {
  const found = packed.get(request.url) ?? gzipSync(make(), { level: 1 });
  packed.set(request.url, found);
  const tag = `W/"${sha(request.url)}"`;
  const headers = { ETag: tag, "Cache-Control": "no-cache", "Content-Encoding": "gzip", Vary: "Accept-Encoding" };
  const known = request.headers["if-none-match"] === tag;
  send(response, known ? 304 : 200, "application/octet-stream", known ? "" : found, headers);
}

const fail = (response, status, message) =>
  send(response, status, "application/json", JSON.stringify({ schema: 1, error: { code: "not_found", message } }));

async function route(name, data, path, query, request, response) {
  if (path.endsWith(".js")) return send(response, 200, "text/javascript", await readFile(join(bundle, basename(path))));
  if (path === "index") return send(response, 200, "application/json", JSON.stringify(index(data)));
  const named = (key) => query.getAll(key).map((text) => data.runs.find((r) => r.name === text));
  const run = named("run")[0];
  if (!run) return fail(response, 404, `Could not find run '${query.get("run")}'.`);
  if (path === "overlap")
    return send(response, 200, "application/json", JSON.stringify(overlapAnswer(name, named("run"), query)));
  if (path === "overlap_layers")
    return send(response, 200, "application/octet-stream", overlapLayersAnswer(name, run, named("other")[0], query));
  const number = (key, otherwise) => Number(query.get(key) ?? otherwise);
  const th = number("th", 1e-3);
  if (path === "overview")
    return sendArrays(request, response, () =>
      overview(name, run, number("cols", 256), th, number("first", -Infinity), number("last", Infinity)),
    );
  if (path === "violations") return send(response, 200, "application/json", JSON.stringify(violationsAnswer(run)));
  if (path === "function") return send(response, 200, "application/octet-stream", functionOf(name, run));
  if (path === "export.csv") return send(response, 200, "text/csv", "step,layer\n");
  const info = run.layers.find((l) => l.id === query.get("layer"));
  if (!info) return fail(response, 404, `Could not find layer '${query.get("layer")}'.`);
  if (path === "layer") return sendArrays(request, response, () => layerAnswer(name, run, info, th));
  if (path === "channel")
    return send(
      response,
      200,
      "application/json",
      JSON.stringify(channelAnswer(name, run, info, Number(query.get("channel")), th)),
    );
  return fail(response, 404, "Could not find the route.");
}

async function sendGlyphs(path, response) {
  const found = await glyphs(path).catch((error) => [
    "text/javascript",
    `throw new Error(${JSON.stringify(String(error))})`,
  ]);
  if (!found) return fail(response, 404, "Could not find the file.");
  return send(response, 200, ...found);
}

const server = createServer((request, response) => {
  const url = new URL(request.url, "http://localhost");
  const [, name, ...rest] = url.pathname.split("/");
  if (name === "favicon.ico") return send(response, 204, "image/x-icon", "");
  const path = rest.join("/");
  if (name === "glyphs") return sendGlyphs(path, response);
  const data = scenarioOf(name);
  if (!data) return fail(response, 404, "Could not find the scenario.");
  if (path === "")
    return send(response, 200, "text/html; charset=utf-8", HOST, { "Content-Security-Policy": policy(HOST_SCRIPT) });
  if (path === "data/plugin_entry.html")
    return send(response, 200, "text/html; charset=utf-8", FRAME, { "Content-Security-Policy": policy(FRAME_SCRIPT) });
  const prefix = "data/plugin/pastnet/";
  if (!path.startsWith(prefix)) return fail(response, 404, "Could not find the page.");
  route(name, data, path.slice(prefix.length), url.searchParams, request, response).catch((error) =>
    fail(response, 500, String(error)),
  );
});
server.listen(port, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/mock/`));
