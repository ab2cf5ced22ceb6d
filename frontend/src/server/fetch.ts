/** Fetches the routes. Every URL is relative to this module, so any path prefix works. */

import { type Container, parseContainer } from "./container";
import {
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
    if (value === null || value === undefined) continue;
    for (const one of typeof value === "object" ? value : [value]) url.searchParams.append(key, String(one));
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

/** @param under a request that is under way already. */
async function get(route: string, query: Query, ask?: Ask, under?: Promise<Response> | null): Promise<Response> {
  let response: Response;
  try {
    response = await (under ?? fetch(routeUrl(route, query), { signal: ask?.signal }));
  } catch (cause) {
    if (ask?.signal.aborted) throw cause;
    throw new Error("Could not reach TensorBoard's server: expected an answer, got none. See whether it still runs.", {
      cause,
    });
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
  let text = "";
  try {
    text = ((await response.json()) as { error?: { message?: string } }).error?.message ?? "";
  } catch {
    // Not our error shape (a proxy's page, say): the status has to do.
  }
  throw new Error(text || `Could not load '${route}': expected status 200, got ${response.status}.`);
}

function checked<T extends { schema: number }>(answer: T): T {
  if (answer.schema !== SCHEMA) {
    throw new Error(
      `Could not read the server's answer: expected schema ${SCHEMA}, got ${answer.schema}. Reload the page.`,
    );
  }
  return answer;
}

async function binary<H extends { schema: number }>(route: string, query: Query, ask?: Ask) {
  const container = parseContainer<H>(await (await get(route, query, ask)).arrayBuffer());
  checked(container.header);
  return container;
}

export async function fetchIndex(ask?: Ask): Promise<IndexAnswer> {
  const under = early;
  early = null;
  return checked((await (await get("index", {}, ask, under)).json()) as IndexAnswer);
}

export const fetchOverview = (query: Query, ask?: Ask): Promise<Container<OverviewHeader>> =>
  binary<OverviewHeader>("overview", query, ask);

export const fetchRecords = (query: Query, ask?: Ask): Promise<Container<RecordsHeader>> =>
  binary<RecordsHeader>("records", query, ask);

export const fetchFindings = async (query: Query, ask?: Ask): Promise<FindingsAnswer> =>
  checked((await (await get("findings", query, ask)).json()) as FindingsAnswer);

export const fetchLayer = (query: Query, ask?: Ask): Promise<Container<LayerHeader>> =>
  binary<LayerHeader>("layer", query, ask);

export const fetchChannel = async (query: Query, ask?: Ask): Promise<ChannelAnswer> =>
  checked((await (await get("channel", query, ask)).json()) as ChannelAnswer);

export const fetchViolations = async (run: string, ask?: Ask): Promise<ViolationsAnswer> =>
  checked((await (await get("violations", { run }, ask)).json()) as ViolationsAnswer);

export const fetchOverlap = async (query: Query, ask?: Ask): Promise<OverlapAnswer> =>
  checked((await (await get("overlap", query, ask)).json()) as OverlapAnswer);

export const fetchOverlapLayers = (query: Query, ask?: Ask): Promise<Container<OverlapLayersHeader>> =>
  binary<OverlapLayersHeader>("overlap_layers", query, ask);

export const fetchFunction = (run: string, ask?: Ask): Promise<Container<FunctionHeader>> =>
  binary<FunctionHeader>("function", { run }, ask);
