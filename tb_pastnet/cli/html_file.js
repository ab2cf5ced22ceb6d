// The answers that this file holds, in place of a server. It asks for nothing from the network.
const decode = (text) => Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
/** A request as one text, however its parameters are ordered and its numbers written. */
function canonical(route, query) {
  const pairs = [...query].map(([name, value]) => [name, name === "th" ? String(Number(value)) : value]);
  return `${route}?${new URLSearchParams(pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))}`;
}
const KEYS = new Map(
  Object.keys(ANSWERS).map((code) => {
    const [route, query] = new TextDecoder().decode(decode(code)).split("?");
    return [canonical(route, new URLSearchParams(query)), code];
  }),
);

/** Of requests that differ by a step alone the steps and the keys, by what they share. */
const STEPS = new Map();
for (const key of KEYS.keys()) {
  const [route, text] = key.split("?");
  const query = new URLSearchParams(text);
  const name = query.has("at") ? "at" : "step";
  const step = Number(query.get(name));
  query.delete(name);
  const shared = canonical(route, query);
  if (!STEPS.has(shared)) STEPS.set(shared, []);
  STEPS.get(shared).push({ step, key });
}

/** The key of the newest answer at or before a step, of those that are equal but for it. */
function newest(route, query, name) {
  const step = Number(query.get(name));
  query.delete(name);
  const before = (STEPS.get(canonical(route, query)) ?? []).filter((other) => other.step <= step);
  return before.sort((a, b) => a.step - b.step).at(-1)?.key ?? null;
}

/** Where an answer with other columns, of more steps or of more runs serves as well. */
function keyOf(route, query) {
  if (route === "overview") {
    for (const name of ["first", "last"]) query.delete(name);
    query.set("cols", "1024");
  }
  if (route === "overlap_layers" && query.has("cols")) query.set("cols", "256");
  if (route === "lanes" && !query.has("layer")) query.set("cols", "512");
  if (route === "scalars") query.delete("name");
  if (route === "layer") query.delete("since");
  if (route === "records") {
    query.set("count", "64");
    return newest(route, query, "at");
  }
  if (route === "findings") return findingsKey(route, query);
  if (route === "overlap") return newest(route, query, "step");
  if ((route === "layer" || route === "channel") && !query.has("variable")) return mainKey(route, query);
  return canonical(route, query);
}

/** Findings of one run or of all are there; for others those of all, which comes first. */
function findingsKey(route, query) {
  const own = canonical(route, query);
  return KEYS.has(own) ? own : [...KEYS.keys()].find((key) => key.startsWith("findings?"));
}

/** Of the variables of a layer the first, by which it is drawn. */
function mainKey(route, query) {
  for (const known of KEYS.keys()) {
    if (!known.startsWith(`${route}?`)) continue;
    const other = new URLSearchParams(known.slice(route.length + 1));
    const variable = other.get("variable");
    other.delete("variable");
    if (canonical(route, other) === canonical(route, query)) {
      other.set("variable", variable);
      return canonical(route, other);
    }
  }
  return null;
}

/** Of several runs the answers one after the other, where each has its own. */
async function ofRuns(route, query) {
  const answers = query.getAll("run").map((run) => {
    const own = new URLSearchParams(query);
    own.set("run", run);
    return answerOf(route, own);
  });
  const parts = await Promise.all(answers);
  return parts.find(({ ok }) => !ok) ?? new Response(new Blob(await Promise.all(parts.map((part) => part.blob()))));
}

async function answerOf(route, query) {
  if (["lanes", "scalars", "records"].includes(route) && query.getAll("run").length > 1) return ofRuns(route, query);
  const wanted = new Set(query.getAll("run"));
  const code = KEYS.get(keyOf(route, query));
  if (code === undefined) {
    const message = `This file doesn't hold it: ${route} is there for some settings alone. Open the log in TensorBoard.`;
    // Not 404, after which the page looks whether the index has changed.
    return new Response(JSON.stringify({ error: { message } }), { status: 410 });
  }
  const packed = new Blob([decode(ANSWERS[code])]).stream();
  const body = await new Response(packed.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
  if (route !== "findings") return new Response(body);
  const found = JSON.parse(new TextDecoder().decode(body));
  const findings = found.findings.filter(({ runs }) => runs.some((run) => wanted.has(run)));
  return new Response(JSON.stringify({ ...found, findings }));
}

window.fetch = async (input) => {
  const { pathname, searchParams } = new URL(String(input));
  return answerOf(pathname.slice(1), searchParams);
};
