/** Fetches the routes. Every URL is relative to this module, so any path prefix works. */

import { type Container, parseContainers } from "./container";
import {
  type Answer,
  type ChannelAnswer,
  type FindingsAnswer,
  type FunctionHeader,
  type IndexAnswer,
  type LayerHeader,
  type OverlapAnswer,
  type OverlapLayersHeader,
  type OverviewHeader,
  type RecordsHeader,
  SCHEMA,
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

/** The index may have been asked for before this module was there. */
let early: Promise<Response> | null = null;

export function useEarly(index: Promise<Response>): void {
  early = index;
}

async function get(route: string, query: Query, ask?: Ask): Promise<Response> {
  const underWay = route === "index" ? early : null;
  if (underWay) early = null;
  let response: Response;
  try {
    response = await (underWay ?? fetch(routeUrl(route, query), { signal: ask?.signal }));
  } catch (cause) {
    if (ask?.signal.aborted) throw cause;
    throw new Error(
      "Could not reach TensorBoard's server: expected an answer, got none. Check that TensorBoard is still running.",
      {
        cause,
      },
    );
  }
  if (response.ok) {
    const tag = response.headers.get("ETag");
    if (ask && tag !== null && tag === ask.tag) {
      void response.body?.cancel();
      throw UNCHANGED;
    }
    if (ask) ask.tag = tag;
    return response;
  }
  // Where it isn't our error's shape (a proxy's page, say), the status has to do.
  const answer: { error?: { message?: string } } | null = await response.json().catch(() => null);
  throw new Error(answer?.error?.message || `Could not load '${route}': expected status 200, got ${response.status}.`);
}

function checked<T extends Answer>(answer: T): T {
  if (answer.schema !== SCHEMA) {
    throw new Error(
      `Could not read the server's answer: expected schema ${SCHEMA}, got ${answer.schema}. Reload the page.`,
    );
  }
  return answer;
}

type Route<T> = (query: Query, ask?: Ask) => Promise<T>;

const json =
  <T extends Answer>(route: string): Route<T> =>
  async (query, ask) =>
    checked((await (await get(route, query, ask)).json()) as T);

async function containers<H extends Answer>(route: string, query: Query, ask?: Ask): Promise<Container<H>[]> {
  const all = parseContainers<H>(await (await get(route, query, ask)).arrayBuffer());
  for (const { header } of all) checked(header);
  return all;
}

const binary =
  <H extends Answer>(route: string): Route<Container<H>> =>
  async (query, ask) =>
    (await containers<H>(route, query, ask))[0];

type Records = Container<RecordsHeader>;

/** By what is asked, the runs of the next request and its answers. */
const together = new Map<string, { runs: string[]; answers: Promise<Records[]> }>();

/** Records of a run. Runs that are asked the same at once share a request: each request takes time of a frame. */
export async function fetchRecords(run: string, query: Query): Promise<Records> {
  const key = JSON.stringify(query);
  const send = async (runs: readonly string[]) => {
    await null; // Until all have asked.
    together.delete(key);
    return containers<RecordsHeader>("records", { ...query, run: runs });
  };
  const runs: string[] = [];
  const next = together.get(key) ?? { runs, answers: send(runs) };
  together.set(key, next);
  const place = next.runs.push(run) - 1;
  // What is wrong with one run is not to hide the others.
  const answers = await next.answers.catch((cause) => (next.runs.length > 1 ? null : Promise.reject(cause)));
  return answers ? answers[place] : (await containers<RecordsHeader>("records", { ...query, run }))[0];
}

export const fetchIndex = json<IndexAnswer>("index");
export const fetchOverview = binary<OverviewHeader>("overview");
export const fetchFindings = json<FindingsAnswer>("findings");
export const fetchLayer = binary<LayerHeader>("layer");
export const fetchChannel = json<ChannelAnswer>("channel");
export const fetchViolations = json<ViolationsAnswer>("violations");
export const fetchOverlap = json<OverlapAnswer>("overlap");
export const fetchOverlapLayers = binary<OverlapLayersHeader>("overlap_layers");
export const fetchFunction = binary<FunctionHeader>("function");
