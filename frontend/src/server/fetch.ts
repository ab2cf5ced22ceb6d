/** Fetches the routes. Every URL is relative to this module, so any path prefix works. */

import { type Container, parseContainers } from "./container";
import { asLoadError, LoadError, unreadable } from "./errors";
import {
  type Answer,
  type ChannelAnswer,
  type FindingsAnswer,
  type FunctionHeader,
  type IndexAnswer,
  type LaneHeader,
  type LayerHeader,
  type OverlapAnswer,
  type OverlapLayersHeader,
  type OverviewHeader,
  type RecordsHeader,
  SCHEMA,
  type ScalarsHeader,
  type ViolationsAnswer,
} from "./types";

const BASE = new URL(".", import.meta.url);

export type Query = Record<string, string | number | readonly string[] | null | undefined>;

/** The absolute URL of a route; parameters that are null or undefined are left out, lists are repeated. */
export function routeUrl(route: string, query: Query = {}): string {
  const url = new URL(route, BASE);
  for (const [key, value] of Object.entries(query)) {
    for (const part of [value ?? []].flat()) url.searchParams.append(key, String(part));
  }
  return url.href;
}

/** What goes with a request. */
export interface Ask {
  signal: AbortSignal;
  /** Names the content that the caller has; of the answer afterwards. */
  tag: string | null;
}

/** Thrown where the content is the one that the caller has. */
export const UNCHANGED = new Error("Nothing is new.");

/** An answer that takes longer counts as lost: connections that hang would block those that don't. */
const LONGEST_MS = 120_000;

/** The index may have been asked for before this module was there. */
let early: Promise<Response> | null = null;

export function useEarly(index: Promise<Response>): void {
  early = index;
}

async function fail(route: string, response: Response): Promise<never> {
  // A proxy's page, say, isn't our error's shape: the status has to do.
  const answer: { error?: { message?: string } } | null = await response.json().catch(() => null);
  const message = answer?.error?.message || `Could not load '${route}': expected status 200, got ${response.status}.`;
  throw new LoadError(message, response.status === 404 ? "unknown" : "failed");
}

async function receive<T>(response: Response, route: string, ask: Ask | undefined, read: Read<T>): Promise<T> {
  const tag = response.headers.get("ETag");
  const has = ask?.tag ?? null;
  if (has !== null && (response.status === 304 || (response.ok && tag === has))) {
    void response.body?.cancel();
    throw UNCHANGED;
  }
  if (!response.ok) return fail(route, response);
  const type = response.headers.get("Content-Type") ?? "";
  if (type.startsWith("text/html")) throw unreadable("it is a web page, such as that of a proxy where you log in");
  let value: T;
  try {
    value = await read(response);
  } catch (cause) {
    throw ask?.signal.aborted ? cause : asLoadError(cause);
  }
  if (ask) ask.tag = tag;
  return value;
}

type Read<T> = (response: Response) => Promise<T>;

/** Asks for a route, and reads the answer. */
async function load<T>(route: string, query: Query, ask: Ask | undefined, read: Read<T>): Promise<T> {
  const underWay = route === "index" ? early : null;
  if (underWay) early = null;
  const own = new AbortController();
  const stop = () => own.abort();
  if (ask?.signal.aborted) stop();
  ask?.signal.addEventListener("abort", stop);
  const get = async () => {
    const response = await (underWay ?? fetch(routeUrl(route, query), { signal: own.signal })).catch((cause) => {
      if (ask?.signal.aborted) throw cause;
      throw new LoadError(
        "Could not reach TensorBoard's server: expected an answer, got none. Check that TensorBoard is still running.",
        "unreachable",
      );
    });
    return receive(response, route, ask, read);
  };
  let timer: ReturnType<typeof setTimeout> | undefined;
  const expiry = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new LoadError(`Could not load '${route}': no answer for ${LONGEST_MS / 1000} seconds.`, "unreachable"));
      stop();
    }, LONGEST_MS);
  });
  try {
    return await Promise.race([get(), expiry]);
  } finally {
    clearTimeout(timer);
    ask?.signal.removeEventListener("abort", stop);
  }
}

function checked<T extends Answer>(answer: T | null): T {
  if (answer?.schema !== SCHEMA) throw unreadable(`expected schema ${SCHEMA}, got ${answer?.schema}`);
  return answer;
}

type Route<T> = (query: Query, ask?: Ask) => Promise<T>;

const json =
  <T extends Answer>(route: string): Route<T> =>
  (query, ask) =>
    load(route, query, ask, async (response) => checked((await response.json()) as T | null));

const containers = <H extends Answer>(route: string, query: Query, count: number, ask?: Ask): Promise<Container<H>[]> =>
  load(route, query, ask, async (response) => {
    const all = parseContainers<H>(await response.arrayBuffer());
    for (const { header } of all) checked(header);
    if (all.length !== count) throw unreadable(`expected ${count} parts, got ${all.length}`);
    return all;
  });

const binary =
  <H extends Answer>(route: string): Route<Container<H>> =>
  async (query, ask) =>
    (await containers<H>(route, query, 1, ask))[0];

/** The table of the route "export.csv", to be saved. */
export const fetchCsv = (query: Query): Promise<Blob> =>
  load("export.csv", query, undefined, (response) => response.blob());

/** The header of an answer about one of several runs. */
interface OfRun extends Answer {
  /** Instead of all else: the run could not be read. */
  error?: { message: string };
}

type Settled<H> = PromiseSettledResult<Container<H>>[];

/** By route and what is asked, the runs of the next request and its answers. */
const together = new Map<string, { runs: string[]; answers: Promise<Settled<OfRun>> }>();

/** After each run of a request failed by itself, the route is at fault: for so long no run is asked by itself. */
const BROKEN_MS = 5_000;
const brokenUntil = new Map<string, number>();

async function ofOne<H extends OfRun>(route: string, run: string, query: Query): Promise<Container<H>> {
  return readable((await containers<H>(route, { ...query, run }, 1))[0]);
}

/** The answer about a run, unless it is one that the server couldn't read, among others that it could. */
function readable<H extends OfRun>(answer: Container<H>): Container<H> {
  if (answer.header.error) throw new LoadError(answer.header.error.message);
  return answer;
}

/** Of each run its answer, or why there is none: what is wrong with one run is not to hide the others. */
async function ofAll<H extends OfRun>(route: string, runs: readonly string[], query: Query): Promise<Settled<H>> {
  const [all] = await Promise.allSettled([containers<H>(route, { ...query, run: runs }, runs.length)] as const);
  if (all.status === "fulfilled") return Promise.allSettled(all.value.map(async (answer) => readable(answer)));
  const { loss } = all.reason as LoadError;
  const broken = Date.now() < (brokenUntil.get(route) ?? 0);
  if (runs.length === 1 || loss === "unreachable" || broken) return runs.map(() => all);
  const each = await Promise.allSettled(runs.map((run) => ofOne<H>(route, run, query)));
  if (each.every(({ status }) => status === "rejected")) brokenUntil.set(route, Date.now() + BROKEN_MS);
  return each;
}

/** An answer about a run. Runs that are asked the same at once share a request: each request takes time of a frame. */
const byRun =
  <H extends OfRun>(route: string) =>
  async (run: string, query: Query): Promise<Container<H>> => {
    const key = route + JSON.stringify(query);
    const send = async (runs: readonly string[]) => {
      await null; // Until all have asked.
      together.delete(key);
      return ofAll<H>(route, runs, query);
    };
    const runs: string[] = [];
    const next = together.get(key) ?? { runs, answers: send(runs) };
    together.set(key, next);
    const place = next.runs.push(run) - 1;
    const answer = ((await next.answers) as Settled<H>)[place];
    if (answer.status === "rejected") throw answer.reason;
    return answer.value;
  };

export const fetchRecords = byRun<RecordsHeader>("records");
export const fetchLane = byRun<LaneHeader>("lanes");
export const fetchScalars = byRun<ScalarsHeader>("scalars");
export const fetchIndex = json<IndexAnswer>("index");
export const fetchOverview = binary<OverviewHeader>("overview");
export const fetchFindings = json<FindingsAnswer>("findings");
export const fetchLayer = binary<LayerHeader>("layer");
export const fetchChannel = json<ChannelAnswer>("channel");
export const fetchViolations = json<ViolationsAnswer>("violations");
export const fetchOverlap = json<OverlapAnswer>("overlap");
export const fetchOverlapLayers = binary<OverlapLayersHeader>("overlap_layers");
export const fetchFunction = binary<FunctionHeader>("function");
