/** The only module that touches TensorBoard's page around the frame. Without a parent the page works by itself. */

type Listener = () => void;

const parentWindow: Window | null = (() => {
  try {
    return window.parent !== window && window.parent.document ? window.parent : null;
  } catch {
    return null; // a foreign parent (a notebook's proxy): work without it
  }
})();

const outer: Window = parentWindow ?? window;

/** Calls back now and at each change with whether the page is dark. */
export function watchTheme(listener: (dark: boolean) => void): void {
  if (!parentWindow) {
    const query = window.matchMedia("(prefers-color-scheme: dark)");
    query.addEventListener("change", () => listener(query.matches));
    listener(query.matches);
    return;
  }
  const body = parentWindow.document.body;
  const tell = () => listener(body.classList.contains("dark-mode"));
  new MutationObserver(tell).observe(body, { attributes: true, attributeFilter: ["class"] });
  tell();
}

/** Calls back with TensorBoard's run names in its own order (which gives their colours), and when data may be new. */
export function watchHost(onRuns: (names: string[]) => void, onReload: Listener): void {
  if (!parentWindow) return;
  const { port1, port2 } = new MessageChannel();
  let nextId = 0;
  const waiting = new Map<number, (payload: unknown) => void>();
  const send = (message: object) => port1.postMessage(JSON.stringify(message));
  const ask = (type: string): Promise<unknown> => {
    const id = nextId++;
    send({ type, id, payload: null, error: null, isReply: false });
    return new Promise((resolve) => waiting.set(id, resolve));
  };
  let last = "";
  /** @returns whether the runs are others than before. */
  const take = (payload: unknown): boolean => {
    if (!Array.isArray(payload) || last === JSON.stringify(payload)) return false;
    last = JSON.stringify(payload);
    onRuns(payload.filter((name): name is string => typeof name === "string"));
    return true;
  };
  port1.onmessage = (event: MessageEvent<string>) => {
    const message = JSON.parse(event.data) as { type: string; id: number; payload: unknown; isReply: boolean };
    if (message.isReply) {
      waiting.get(message.id)?.(message.payload);
      waiting.delete(message.id);
      return;
    }
    send({ type: message.type, id: message.id, payload: null, error: null, isReply: true });
    if (message.type === "experimental.RunsChanged") {
      // Back and Forward send the same list again.
      if (take(message.payload)) onReload();
    } else if (message.type === "experimental.DataReloaded") {
      onReload();
    }
  };
  parentWindow.postMessage("experimental.bootstrap", window.location.origin, [port2]);
  void ask("experimental.GetRuns").then(take);
}

/**
 * Calls back when the frame comes into sight or leaves it; TensorBoard's hidden tabs still report themselves visible.
 */
export function watchVisible(listener: (visible: boolean) => void): void {
  new IntersectionObserver((entries) => listener(entries[entries.length - 1].isIntersecting)).observe(
    document.documentElement,
  );
}

const PREFIX = "p.pastnet.";
const PLUGIN = "pastnet";

/** The parts of the outer page's hash; the first one names the plugin that is shown. */
const hashParts = (): string[] => outer.location.hash.slice(1).split("&");
const isShown = (): boolean => ["", PLUGIN].includes(hashParts()[0]);

/** Our part of the outer page's hash, as decoded pairs. */
export function readHash(): Map<string, string> {
  const pairs = new Map<string, string>();
  for (const part of hashParts()) {
    if (!part.startsWith(PREFIX)) continue;
    const equals = part.indexOf("=");
    if (equals < 0) continue;
    try {
      pairs.set(part.slice(PREFIX.length, equals), decodeURIComponent(part.slice(equals + 1)));
    } catch {
      // A damaged escape in a hand-edited URL: that part falls back to its default.
    }
  }
  return pairs;
}

/** The outer URL with our pairs replaced; TensorBoard's own parts stay. */
export function hashUrl(pairs: Map<string, string>): string {
  const others = hashParts().filter((part) => part !== "" && !part.startsWith(PREFIX));
  if (others.length === 0) others.push(PLUGIN);
  const ours = [...pairs].map(([key, value]) => `${PREFIX}${key}=${encodeURIComponent(value)}`);
  return `${outer.location.href.split("#")[0]}#${[...others, ...ours].join("&")}`;
}

/** Writes our pairs; `push` makes a step for Back. Does nothing while another tab of TensorBoard is shown. */
export function writeHash(pairs: Map<string, string>, push: boolean): void {
  const url = hashUrl(pairs);
  if (!isShown() || url === outer.location.href) return;
  if (push) outer.history.pushState(outer.history.state, "", url);
  else outer.history.replaceState(outer.history.state, "", url);
}

/** Listens to the outer page, which outlives a frame that TensorBoard removes. */
function listen(target: EventTarget, type: string, listener: (event: Event) => void): void {
  target.addEventListener(type, listener);
  window.addEventListener("pagehide", () => target.removeEventListener(type, listener));
}

/** Calls back after Back, Forward or an edit of the address. */
export function watchHash(listener: Listener): void {
  listen(outer, "popstate", listener);
  listen(outer, "hashchange", listener);
}

/**
 * Calls back for keys pressed in the page, and in TensorBoard's page while nothing there has the focus: a tab that was
 * opened by its address has none, and taking it away from a notebook around would be rude.
 */
export function watchKeys(listener: (event: KeyboardEvent) => void): void {
  document.addEventListener("keydown", listener);
  if (!parentWindow) return;
  const { document: around } = parentWindow;
  listen(around, "keydown", (event) => {
    if (event.target === around.body && isShown()) listener(event as KeyboardEvent);
  });
}

/** What was remembered under a name at an earlier visit; null where nothing was, or the browser allows no memory. */
export function remembered(name: string): string | null {
  try {
    return window.localStorage.getItem(name);
  } catch {
    return null;
  }
}

export function remember(name: string, text: string | null): void {
  try {
    if (text === null) window.localStorage.removeItem(name);
    else window.localStorage.setItem(name, text);
  } catch {
    // It is asked for again at the next visit.
  }
}

/** Copies text; true when it worked. The clipboard API is absent on plain http hosts, so there is a second way. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "offscreen";
    area.setAttribute("aria-hidden", "true");
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }
}

/** Puts a PNG on the clipboard; false where the browser doesn't allow it. */
export async function copyImage(blob: Blob): Promise<boolean> {
  try {
    await navigator.clipboard.write([new ClipboardItem({ [blob.type]: blob })]);
    return true;
  } catch {
    return false;
  }
}

/** Saves a blob under a file name. */
export function saveAs(source: Blob, name: string): void {
  const url = URL.createObjectURL(source);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
