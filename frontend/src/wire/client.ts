/** Fetches the routes. Every URL is relative to this module, so any path prefix works. */

import { type Container, parseContainer } from "./container";
import {
  type ChannelAnswer,
  type FunctionHeader,
  type IndexAnswer,
  type LayerHeader,
  type OverlapAnswer,
  type OverlapLayersHeader,
  type OverviewHeader,
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

async function get(route: string, query: Query, signal?: AbortSignal): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(routeUrl(route, query), { signal });
  } catch (cause) {
    if (signal?.aborted) throw cause;
    throw new Error("Could not reach TensorBoard's server: expected an answer, got none. See whether it still runs.", {
      cause,
    });
  }
  if (response.ok) return response;
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

async function binary<H extends { schema: number }>(route: string, query: Query, signal?: AbortSignal) {
  const container = parseContainer<H>(await (await get(route, query, signal)).arrayBuffer());
  checked(container.header);
  return container;
}

export const fetchIndex = async (signal?: AbortSignal): Promise<IndexAnswer> =>
  checked((await (await get("index", {}, signal)).json()) as IndexAnswer);

export const fetchOverview = (query: Query, signal?: AbortSignal): Promise<Container<OverviewHeader>> =>
  binary<OverviewHeader>("overview", query, signal);

export const fetchLayer = (query: Query, signal?: AbortSignal): Promise<Container<LayerHeader>> =>
  binary<LayerHeader>("layer", query, signal);

export const fetchChannel = async (query: Query, signal?: AbortSignal): Promise<ChannelAnswer> =>
  checked((await (await get("channel", query, signal)).json()) as ChannelAnswer);

export const fetchViolations = async (run: string, signal?: AbortSignal): Promise<ViolationsAnswer> =>
  checked((await (await get("violations", { run }, signal)).json()) as ViolationsAnswer);

export const fetchOverlap = async (query: Query, signal?: AbortSignal): Promise<OverlapAnswer> =>
  checked((await (await get("overlap", query, signal)).json()) as OverlapAnswer);

export const fetchOverlapLayers = (query: Query, signal?: AbortSignal): Promise<Container<OverlapLayersHeader>> =>
  binary<OverlapLayersHeader>("overlap_layers", query, signal);

export const fetchFunction = (run: string, signal?: AbortSignal): Promise<Container<FunctionHeader>> =>
  binary<FunctionHeader>("function", { run }, signal);
