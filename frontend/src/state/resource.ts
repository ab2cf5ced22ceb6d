/**
 * Answers of the server by key. The last good one stays while a newer one loads and where that fails: what was known is
 * old then, and what wasn't is not loaded; only an answer can say that something is missing. What failed is asked for
 * again by itself, after pauses that grow, and by Retry.
 */

import { type Signal, signal } from "@preact/signals";
import { ABSENT } from "../data/absent";
import { asLoadError, type LoadError } from "../server/errors";
import { type Ask, UNCHANGED } from "../server/fetch";
import { deliver, expectAnswer } from "./arrivals";
import { afterFrames, begin, finish } from "./frames";

export interface Resource<T> {
  value: T | null;
  /** Why there is nothing newer: the last request failed, or has had no answer for long. */
  error: string | null;
  loading: boolean;
  /** When the value came or was confirmed, in ms since 1970. */
  at: number;
}

export const [WAITING, NOT_LOADED] = ["…", "not loaded"];

/**
 * The text where a value is missing.
 *
 * @param answer which the value would be in; null where it is known without one that there is none.
 * @param absent the text for that: only an answer can say so.
 */
export function insteadText(answer: Resource<unknown> | null, absent: string = ABSENT.record): string {
  if (!answer || answer.value) return absent;
  return answer.error ? NOT_LOADED : WAITING;
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
  /** Requests that failed since the last good one. */
  failures: number;
  /** Set while a request is awaited for long, or is to be repeated. */
  timer: ReturnType<typeof setTimeout> | undefined;
  /** Asks again as it was asked last. */
  again: () => void;
  /** Whether its last failure may be due to the server or the run being gone: the index is asked first. */
  gone: boolean;
}

type Lane = "now" | "later";

const SLOW = "TensorBoard's server hasn't answered yet. It may be reading a large log.";

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
/** After so long without an answer the page says so. */
const SLOW_MS = 10_000;
/** What failed is asked for again by itself after 5, 10, 20, 40 seconds, then once a minute. */
const pauseAfter = (failures: number): number => Math.min(60_000, 5_000 * 2 ** (failures - 1));

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
  clearTimeout(entry.timer);
  entry.abort?.abort();
  entry.abort = null;
  hurry(entry);
}

/** Given the value before, which it may add to. */
type Loader<T> = (ask: Ask, before: T | null) => Promise<T>;

/** Asks again for what failed, or has it asked for when something shows it. */
function askAgain(entry: Entry): void {
  if (entry === entries.get(INDEX)) version.value++;
  else if (!entry.watched) entry.asked = "";
  else entry.again();
}

/** When answers that may be gone are asked for next, all together, and how often that was in vain. */
const goneNext = { timer: undefined as ReturnType<typeof setTimeout> | undefined, failures: 0 };

const watchedGone = (): boolean => [...entries.values()].some(({ gone, watched }) => gone && watched);

/** The server or a run may be gone: the index shows it, and what the index has is asked for after it. */
function askForGone(): void {
  goneNext.timer = undefined;
  for (const entry of entries.values()) if (entry.gone && !entry.watched) entry.asked = "";
  const index = entries.get(INDEX);
  // An index that failed is asked for in its own time.
  if (watchedGone() && index && !index.abort && index.failures === 0) version.value++;
}

/** A failure: it is kept, and the request repeated after a pause. */
function keepFailure(entry: Entry, { loss }: LoadError): void {
  entry.failures++;
  entry.gone = loss !== "failed" && entry !== entries.get(INDEX);
  if (entry.gone) goneNext.timer ??= setTimeout(askForGone, pauseAfter(++goneNext.failures));
  else entry.timer = setTimeout(() => askAgain(entry), pauseAfter(entry.failures));
}

/** Shows the answer of a request, or why there is none. */
function settle(entry: Entry, outcome: { value: unknown } | { error: LoadError } | null): void {
  const { value, at } = entry.state.peek();
  entry.abort = null;
  if (outcome && "error" in outcome) {
    entry.state.value = { value, at, error: outcome.error.message, loading: false };
    keepFailure(entry, outcome.error);
    return;
  }
  entry.failures = 0;
  entry.gone = false;
  if (!watchedGone()) goneNext.failures = 0;
  entry.state.value = { value: outcome ? outcome.value : value, at: Date.now(), error: null, loading: false };
}

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
  let underWay = true;
  /** It holds up nothing any more. */
  const release = () => {
    if (underWay) {
      busy[lane]--;
      finish();
    }
    underWay = false;
  };
  // No part of the page waits for it any more.
  if (abort.signal.aborted) {
    came();
    return release();
  }
  entry.timer = setTimeout(() => {
    entry.state.value = { ...entry.state.peek(), error: SLOW };
    came();
    release();
    pump();
  }, SLOW_MS);
  const ask: Ask = { signal: abort.signal, tag: entry.tag };
  let outcome: { value: T } | { error: LoadError } | null = null;
  try {
    outcome = { value: await loader(ask, before.value as T | null) };
  } catch (error) {
    if (error !== UNCHANGED) outcome = { error: asLoadError(error) };
  }
  came();
  deliver(entry.kind, () => {
    release();
    if (entry.abort === abort) {
      clearTimeout(entry.timer);
      if (outcome && "value" in outcome) {
        entry.tag = ask.tag;
        entry.bytes = size(outcome.value);
      }
      settle(entry, outcome);
      if (entry === entries.get(INDEX) && entry.failures === 0) indexed.value = asked;
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
    { value: null, error: null, loading: true, at: 0 },
    { watched: watch(true), unwatched: watch(false) },
  );
  const entry: Entry = {
    ...{ kind, state, asked: "", abort: null, tag: null, watched: false, bytes: 0, used: 0 },
    ...{ failures: 0, timer: undefined, again: () => {}, gone: false },
  };
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
    entry.again = () => void load(entry, loader, size, true);
    // Not while a component renders: loading changes signals.
    queueMicrotask(() => void load(entry, loader, size, later));
  } else if (!later) hurry(entry);
  return entry.state as Signal<Resource<T>>;
}

/** Asks at once for everything that failed or has had no answer for long. */
export function retry(): void {
  const failed = [...entries.values()].filter((entry) => entry.state.peek().error !== null);
  for (const entry of failed) entry.failures = 0;
  goneNext.failures = 0;
  clearTimeout(goneNext.timer);
  goneNext.timer = undefined;
  if (failed.some((entry) => entry.gone || entry === entries.get(INDEX))) version.value++;
  for (const entry of failed) if (!entry.gone && entry !== entries.get(INDEX)) askAgain(entry);
}
