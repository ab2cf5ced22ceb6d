/** Answers of the server by key: the last good one stays while a newer one loads, and errors can be retried. */

import { type Signal, signal } from "@preact/signals";
import { type Ask, UNCHANGED } from "../server/fetch";
import { afterFrames, begin, deliver, expectAnswer, finish } from "./frames";

export interface Resource<T> {
  value: T | null;
  error: string | null;
  loading: boolean;
}

interface Entry {
  /** The first word of the key. */
  kind: string;
  state: Signal<Resource<unknown>>;
  /** What the value was asked with; another text means a reload. */
  asked: string;
  abort: AbortController | null;
  /** Names the content of the value. */
  tag: string | null;
  /** Whether anything on the screen shows it. */
  watched: boolean;
  bytes: number;
  used: number;
}

type Lane = "now" | "later";

/** Of answers, those on the screen included; only these may go beyond. */
const CEILING_BYTES = 256 * 2 ** 20;
/** Requests at once for what isn't looked at first: a browser has six to a server. */
const LATER = 2;
const entries = new Map<string, Entry>();
const busy = { now: 0, later: 0 };
const waiting = new Map<Entry, (lane: Lane) => void>();
let clock = 0;
/** Grows when the host says that data may be new: the index is asked for. */
export const version = signal(0);
const INDEX = "index";
/** The version of the last index that came. All else is asked for after it: nothing asks for a run that is gone. */
const indexed = signal(0);
/** After a failure the index is asked for again by itself. */
const AGAIN_MS = 15_000;

function evict(): void {
  let total = [...entries.values()].reduce((sum, entry) => sum + entry.bytes, 0);
  for (const [key, entry] of [...entries].sort((a, b) => a[1].used - b[1].used)) {
    if (total <= CEILING_BYTES) return;
    if (entry.abort || entry.watched) continue;
    entries.delete(key);
    total -= entry.bytes;
  }
}

/** Lets requests go that waited for more urgent ones. */
function pump(): void {
  for (const go of [...waiting.values()]) {
    if (busy.now > 0 || busy.later >= LATER) return;
    go("later");
  }
}

function take(lane: Lane): Lane {
  busy[lane]++;
  return lane;
}

function turn(entry: Entry): Promise<Lane> {
  return new Promise((resolve) => {
    waiting.set(entry, (lane) => {
      waiting.delete(entry);
      resolve(take(lane));
    });
    pump();
  });
}

const hurry = (entry: Entry): void => waiting.get(entry)?.("now");

function drop(entry: Entry): void {
  entry.abort?.abort();
  entry.abort = null;
  hurry(entry);
}

/** Given the value before, which it may add to. */
type Loader<T> = (ask: Ask, before: T | null) => Promise<T>;

async function load<T>(entry: Entry, loader: Loader<T>, size: (value: T) => number, later: boolean): Promise<void> {
  drop(entry);
  const abort = new AbortController();
  entry.abort = abort;
  begin();
  const before = entry.state.peek();
  const asked = version.peek();
  if (!before.loading) entry.state.value = { ...before, loading: true };
  // At once where nothing comes before it: what is rendered meanwhile isn't waited for.
  const lane = later ? await turn(entry) : take("now");
  const came = lane === "now" ? expectAnswer(entry.kind) : () => {};
  const ask: Ask = { signal: abort.signal, tag: entry.tag };
  let after: Resource<unknown> = { ...before, error: null, loading: false };
  try {
    const value = await loader(ask, before.value as T | null);
    after = { ...after, value };
    entry.bytes = size(value);
  } catch (error) {
    if (error !== UNCHANGED) after = { ...after, error: (error as Error).message };
  }
  came();
  deliver(entry.kind, () => {
    busy[lane]--;
    finish();
    if (entry.abort === abort) {
      entry.abort = null;
      if (after.value !== before.value) entry.tag = ask.tag;
      entry.state.value = after;
      if (entry === entries.get(INDEX)) {
        if (after.error === null) indexed.value = asked;
        else setTimeout(() => asked === version.peek() && version.value++, AGAIN_MS);
      }
      evict();
    }
    // What has arrived is drawn first.
    afterFrames(2, pump);
  });
}

function makeEntry(kind: string): Entry {
  const watch = (watched: boolean) => () => {
    entry.watched = watched;
    // A request that nothing waits for any more is aborted, unless the next view needs it too.
    if (!watched)
      setTimeout(() => {
        if (entry.watched || !entry.abort) return;
        drop(entry);
        entry.asked = "";
      });
  };
  const state = signal<Resource<unknown>>(
    { value: null, error: null, loading: true },
    { watched: watch(true), unwatched: watch(false) },
  );
  const entry: Entry = { kind, state, asked: "", abort: null, tag: null, watched: false, bytes: 0, used: 0 };
  return entry;
}

/**
 * The resource of a key as a signal, loading it where needed.
 *
 * @param key names the place; its value stays while another `asked` loads.
 * @param asked the parameters of the request.
 * @param later whether it may wait for all that may not.
 */
export function resource<T>(
  key: string,
  asked: string,
  loader: Loader<T>,
  size: (value: T) => number = () => 0,
  later = false,
): Signal<Resource<T>> {
  const entry = entries.get(key) ?? makeEntry(key.split(" ", 1)[0]);
  entries.set(key, entry);
  entry.used = ++clock;
  const want = `${(key === INDEX ? version : indexed).value} ${asked}`;
  if (entry.asked !== want) {
    entry.asked = want;
    // Not while a component renders: loading changes signals.
    queueMicrotask(() => void load(entry, loader, size, later));
  } else if (!later) hurry(entry);
  return entry.state as Signal<Resource<T>>;
}

/** Loads again everything that failed. */
export function retry(): void {
  for (const entry of entries.values()) if (entry.state.peek().error !== null) entry.asked = "";
  version.value++;
}
