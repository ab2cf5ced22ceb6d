// Requests that fail: what the page says then, when they are good again, and when they fail after that.
import { createServer, request as send } from "node:http";
import { idle } from "../../../frontend/scripts/browser.mjs";
import { click, hashOf, openFrame, painted } from "../visit.mjs";

const json = (response, status, message) =>
  response
    .writeHead(status, { "Content-Type": "application/json" })
    .end(JSON.stringify({ schema: 2, error: { code: "x", message } }));
const LOGIN = "<!DOCTYPE html><title>Log in</title><form>No runs. No violations.</form>";

/** What becomes of an answer. */
const MODES = {
  500: (response) => json(response, 500, "Could not read the run: expected no error, got KeyError."),
  404: (response) => json(response, 404, "Could not find the run: expected one of the index, got another."),
  "login page": (response) => response.writeHead(200, { "Content-Type": "text/html" }).end(LOGIN),
  gone: (response) => response.destroy(),
  /** The connection ends in the middle of the answer. */
  "cut off": (response, status, headers, body) => {
    response.writeHead(status, { ...headers, "Content-Length": body.length });
    response.write(body.subarray(0, body.length >> 1), () => response.destroy());
  },
  /** As a proxy stores half an answer. */
  short: (response, status, headers, body) => {
    const half = body.subarray(0, body.length >> 1);
    response.writeHead(status, { ...headers, "Content-Length": half.length }).end(half);
  },
  hang: () => {},
};

const routeOf = (url) => /\/plugin\/pastnet\/(\w+)(?:\.csv)?(?:\?|$)/.exec(url)?.[1];

/** A proxy before TensorBoard: answers of one route may fail. */
async function faultyProxy(target) {
  const { host } = new URL(target);
  const fault = { route: null, mode: null, held: new Set() };
  const server = createServer((request, response) => {
    const failing = fault.route !== null && routeOf(request.url) === fault.route;
    if (failing && fault.mode === "hang") return void fault.held.add(response);
    const headers = { ...request.headers, host, "accept-encoding": "identity" };
    // Of what the browser has already, too, there is an answer that can fail.
    if (failing) delete headers["if-none-match"];
    const behind = send(`http://${host}${request.url}`, { method: request.method, headers }, (answer) => {
      const parts = [];
      answer.on("data", (part) => parts.push(part));
      answer.on("end", () => {
        const body = Buffer.concat(parts);
        const { connection: _, "transfer-encoding": __, ...rest } = answer.headers;
        // Of an answer that is the one the page has, it reads the tag only.
        const other = { ...rest, etag: 'W/"newer"' };
        if (failing) return MODES[fault.mode](response, answer.statusCode, other, body);
        response.writeHead(answer.statusCode, rest).end(body);
      });
    });
    behind.on("error", () => response.destroy());
    request.pipe(behind);
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const stop = () => {
    server.closeAllConnections();
    server.close();
  };
  return { base: `http://127.0.0.1:${server.address().port}`, fault, stop };
}

/** The page waits for seconds and minutes: its clock goes faster here, so that no test has to. */
const FASTER = 50;
const hasten = (factor) => {
  const real = window.setTimeout;
  window.setTimeout = (action, delay = 0, ...rest) => real(action, delay >= 5000 ? delay / factor : delay, ...rest);
};

/** All that the page says: its texts, and what is read out or shown under the pointer. */
const texts = (frame) =>
  frame.evaluate(() => {
    const said = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (node instanceof Text) said.push(node.data);
      else for (const name of ["aria-label", "title"]) if (node.hasAttribute(name)) said.push(node.getAttribute(name));
    }
    return said;
  });

/** What a reader sees of the view, line by line, without what depends on the pointer. */
const lines = (frame) =>
  frame.evaluate(() => {
    // A sign next to a name takes some of its room: however it is cut, it is that name.
    const names = new Map([...document.querySelectorAll("main .path")].map((one) => [one.textContent, one.title]));
    const said = document.querySelector("main").innerText.split("\n").filter(Boolean);
    return said.map((line) => names.get(line) ?? line);
  });

const TROUBLE = ".failure, .lost, .old";

const retries = (frame) =>
  frame.$$eval(TROUBLE, (all) => all.filter((one) => /Retry/.test(one.textContent) || one.title.includes("Retry")).length);

/**
 * A part has failed and says so. Where the clock is faster, a good answer may be late, too: what says only that is the
 * failure where answers hang.
 */
const failed = (frame, mode) =>
  frame.waitForFunction(
    ([trouble, hangs]) =>
      [...document.querySelectorAll(trouble)]
        .map((one) => `${one.textContent} ${one.title}`)
        .some((text) => text.includes("Retry") && (hangs || !text.includes("hasn't answered yet"))),
    [TROUBLE, mode === "hang"],
  );

/** Where the pointer goes: what a view shows there. */
const HOVERED = ".run-column, .dots-column, .heat-plot, .side .heat-plot, .lap-plot, .matrix td, .fn-plot, .fn-dots";

/** The texts of a view as a picture, under the pointer, and as tables. */
async function listen(page, frame) {
  const said = await texts(frame);
  const all = await frame.$$(HOVERED);
  for (const element of [all[0], all.at(-1)].filter(Boolean)) {
    const box = await element.boundingBox();
    if (!box) continue;
    await page.mouse.move(box.x + box.width / 3, box.y + Math.min(20, box.height / 2));
    await painted(frame);
    said.push(...(await texts(frame)));
  }
  await page.mouse.move(2, 2);
  const press = (what) => frame.$$eval(`main .button.small[aria-label^=${what}]`, (all) => all.map((one) => one.click()));
  await press("View");
  await painted(frame);
  said.push(...(await texts(frame)));
  await press("Show");
  await painted(frame);
  return said;
}

const good = (frame) =>
  frame.waitForFunction(
    (trouble) => !document.querySelector(trouble) && document.documentElement.dataset.pastnetIdle === "true",
    TROUBLE,
  );

/** The view with good answers, and the routes that it asks for. */
export async function healthy({ base, newPage }, { hash }) {
  const page = await newPage({ height: 1000 });
  const routes = new Set();
  page.on("request", (request) => {
    const route = routeOf(request.url());
    if (route && !["index", "static"].includes(route)) routes.add(route);
  });
  const frame = await openFrame(page, base, { hash: hashOf(hash) });
  const seen = await lines(frame);
  return { lines: seen, said: await listen(page, frame), routes: ["index", ...routes] };
}

/** A route fails from the beginning on, is good, and fails after a reload. */
export async function failing({ base, newPage, seen }, { hash, route, mode }) {
  const page = await newPage({ height: 1000 });
  await page.addInitScript(hasten, FASTER);
  const proxy = await faultyProxy(base);
  const { fault } = proxy;
  /** How often the page asked for each address, and since when. Where a connection ends, Chromium asks again by itself. */
  let [asked, since] = [{}, 0];
  page.on("request", (request) => {
    const url = request.url();
    if (routeOf(url) === route) asked[url] = (asked[url] ?? 0) + 1;
  });
  const fail = () => {
    Object.assign(fault, { route, mode });
    [asked, since] = [{}, Date.now()];
  };
  const heal = async () => {
    const found = { asked: Object.values(asked), seconds: ((Date.now() - since) / 1000) * FASTER };
    fault.route = null;
    for (const response of fault.held) response.destroy();
    fault.held.clear();
    await good(frame);
    return { ...found, lines: await lines(frame) };
  };
  const look = async () => ({ lines: await lines(frame), retries: await retries(frame) });
  let frame;
  const found = {};
  try {
    fail();
    frame = await openFrame(page, proxy.base, { hash: hashOf(hash) });
    // What is asked for only where the pointer is may fail there alone.
    await failed(frame, mode);
    found.fresh = { ...(await look()), said: await listen(page, frame) };
    found.healed = await heal();
    fail();
    await page.evaluate(() => window.reloadData());
    await failed(frame, mode);
    found.known = { ...(await look()), said: await listen(page, frame) };
    found.again = await heal();
  } finally {
    proxy.stop();
  }
  // What the browser says of answers that fail.
  seen.errors = seen.errors.filter((text) => !text.startsWith("Failed to load resource"));
  return found;
}

/** A table that can't be saved, and then can. */
export async function unsaved({ base, newPage, seen }, { mode }) {
  const page = await newPage();
  const proxy = await faultyProxy(base);
  try {
    const frame = await openFrame(page, proxy.base, { hash: hashOf({ v: "network" }) });
    Object.assign(proxy.fault, { route: "export", mode });
    await click(frame, ".download > button");
    await frame.click(".menu button:has-text('CSV of')");
    await frame.waitForSelector(".unsaved");
    const text = await frame.textContent(".unsaved p");
    proxy.fault.route = null;
    const waiting = page.waitForEvent("download");
    await frame.click(".unsaved button:has-text('Retry')");
    const name = (await waiting).suggestedFilename();
    await idle(frame);
    seen.errors = seen.errors.filter((error) => !error.startsWith("Failed to load resource"));
    return { text, name, alerts: (await frame.$$(".unsaved")).length };
  } finally {
    proxy.stop();
  }
}
