/** Answers of the server by key: the last good one stays while a newer one loads, and errors can be retried. */

import { type Signal, signal } from "@preact/signals";
import { begin, finish } from "./idle";

export interface Resource<T> {
  value: T | null;
  error: string | null;
  loading: boolean;
}

interface Entry {
  state: Signal<Resource<unknown>>;
  /** What the value was asked with; another text means a reload. */
  asked: string;
  abort: AbortController | null;
  bytes: number;
  used: number;
}

const CEILING_BYTES = 256 * 2 ** 20;
const entries = new Map<string, Entry>();
let clock = 0;
/** Grows when the host says that data may be new. */
export const version = signal(0);

function evict(): void {
  let total = 0;
  for (const entry of entries.values()) total += entry.bytes;
  const oldest = [...entries].sort((a, b) => a[1].used - b[1].used);
  for (const [key, entry] of oldest) {
    if (total <= CEILING_BYTES) return;
    if (entry.abort || clock - entry.used < 40) continue;
    entries.delete(key);
    total -= entry.bytes;
  }
}

async function load<T>(
  entry: Entry,
  loader: (signal: AbortSignal) => Promise<T>,
  size: (value: T) => number,
): Promise<void> {
  entry.abort?.abort();
  const abort = new AbortController();
  entry.abort = abort;
  begin();
  const before = entry.state.peek();
  entry.state.value = { ...before, loading: true };
  try {
    const value = await loader(abort.signal);
    if (entry.abort !== abort) return;
    entry.state.value = { value, error: null, loading: false };
    entry.bytes = size(value);
    evict();
  } catch (error) {
    if (entry.abort !== abort) return;
    entry.state.value = { value: before.value, error: (error as Error).message, loading: false };
  } finally {
    if (entry.abort === abort) entry.abort = null;
    finish();
  }
}

/**
 * The resource of a key as a signal, loading it where needed.
 *
 * @param key names the place; its value stays while another `asked` loads.
 * @param asked the parameters of the request.
 */
export function resource<T>(
  key: string,
  asked: string,
  loader: (signal: AbortSignal) => Promise<T>,
  size: (value: T) => number = () => 0,
): Signal<Resource<T>> {
  let entry = entries.get(key);
  if (!entry) {
    entry = { state: signal({ value: null, error: null, loading: true }), asked: "", abort: null, bytes: 0, used: 0 };
    entries.set(key, entry);
  }
  entry.used = ++clock;
  const want = `${version.value} ${asked}`;
  if (entry.asked !== want) {
    entry.asked = want;
    const asking = entry;
    // Not while a component renders: loading changes signals.
    queueMicrotask(() => void load(asking, loader, size));
  }
  return entry.state as Signal<Resource<T>>;
}

/** Loads again everything that failed. */
export function retry(): void {
  for (const entry of entries.values()) if (entry.state.peek().error !== null) entry.asked = "";
  version.value++;
}
