import { effect } from "@preact/signals";
import { afterEach, describe, expect, it, vi } from "vitest";
import { LoadError } from "../server/errors";
import { type Ask, UNCHANGED } from "../server/fetch";
import { loading } from "./frames";
import { resource, retry, version } from "./resource";

const frames: (() => void)[] = [];
const turn = () => new Promise((resolve) => setTimeout(resolve));

/** Lets requests start and answers arrive, and shows the next frame. */
async function frame(): Promise<void> {
  await turn();
  for (const one of frames.splice(0)) one();
  await turn();
}

// For the whole file: what a test leaves behind may still want a frame.
vi.stubGlobal("requestAnimationFrame", (one: () => void) => frames.push(one));
vi.stubGlobal("document", { documentElement: { dataset: {} } });

afterEach(frame);

/** An answer is drawn first; then requests go that waited. */
const drawn = async () => {
  for (let i = 0; i < 3; i++) await frame();
};

/** A server that answers when told to, and what it was asked. */
function server() {
  const asked: string[] = [];
  const answers = new Map<string, (value: unknown) => void>();
  const loader = (name: string) => (ask: Ask) => {
    asked.push(name);
    return new Promise<unknown>((resolve, reject) => {
      answers.set(name, resolve);
      ask.signal.addEventListener("abort", () => reject(new Error("aborted")));
    });
  };
  return { asked, loader, answer: (name: string, value: unknown = name) => answers.get(name)?.(value) };
}

/** Shows a resource until it is put away. */
const show = (key: string, asked: string, loader: (ask: Ask) => Promise<unknown>, later = false) => {
  const seen: unknown[] = [];
  const close = effect(() => {
    seen.push(resource(key, asked, loader, () => 1, later).value.value);
  });
  return { seen, close };
};

describe("resources", () => {
  it("draw answers of one frame at once", async () => {
    const { loader, answer } = server();
    let renders = 0;
    const close = effect(() => {
      for (const key of ["a1", "a2", "a3"]) resource(key, "", loader(key)).value;
      renders++;
    });
    await turn();
    for (const key of ["a1", "a2", "a3"]) answer(key);
    const before = renders;
    await frame();
    expect(renders - before).toBe(1);
    close();
  });

  it("ask first for what is looked at, and hurry what comes to be", async () => {
    const { asked, loader, answer } = server();
    const later = ["b1", "b2", "b3", "b4"].map((key) => show(key, "", loader(key), true));
    const now = show("b0", "", loader("b0"));
    await turn();
    // Two were alone when they asked, and let the other go first.
    expect(asked).toEqual(["b0", "b1", "b2"]);
    answer("b1");
    await drawn();
    expect(asked).toEqual(["b0", "b1", "b2"]);
    const hurried = show("b4", "", loader("b4"));
    await turn();
    expect(asked).toEqual(["b0", "b1", "b2", "b4"]);
    answer("b0");
    answer("b4");
    await frame();
    expect(asked).toHaveLength(4);
    await drawn();
    expect(asked).toEqual(["b0", "b1", "b2", "b4", "b3"]);
    for (const key of ["b2", "b3"]) answer(key);
    await frame();
    for (const one of [...later, now, hurried]) one.close();
  });

  it("give up what nobody shows any more, and ask again when somebody does", async () => {
    const { asked, loader, answer } = server();
    show("c", "", loader("c")).close();
    await turn();
    await frame();
    expect(asked).toEqual(["c"]);
    const again = show("c", "", loader("c"));
    await turn();
    expect(asked).toEqual(["c", "c"]);
    answer("c");
    await frame();
    expect(again.seen).toEqual([null, "c"]);
    again.close();
  });

  it("keep the last answer while another loads, and the newest where two are on their way", async () => {
    const { loader, answer } = server();
    const seen: unknown[] = [];
    let asked = "x";
    const close = effect(() => {
      version.value;
      seen.push(resource("d", asked, loader(asked)).value.value);
    });
    await turn();
    asked = "y";
    version.value++;
    await turn();
    answer("x");
    answer("y");
    await frame();
    expect(seen[seen.length - 1]).toBe("y");
    expect(seen).not.toContain("x");
    close();
  });

  it("don't change where the server has nothing new", async () => {
    const tags: (string | null)[] = [];
    const value = { of: "the first answer" };
    const loader = async (ask: Ask) => {
      tags.push(ask.tag);
      if (ask.tag === "one") throw UNCHANGED;
      ask.tag = "one";
      return value;
    };
    const one = show("index", "", loader);
    await frame();
    version.value++;
    await frame();
    expect(tags).toEqual([null, "one"]);
    expect(new Set(one.seen)).toEqual(new Set([null, value]));
    expect(resource("index", "", loader).value.error).toBeNull();
    one.close();
  });

  /** Lets answers come and frames pass, then so many seconds. */
  const pass = async (seconds: number) => {
    for (let second = 0; second <= seconds; second++) {
      for (let turns = 0; turns < 20; turns++) {
        await Promise.resolve();
        for (const one of frames.splice(0)) one();
      }
      if (second < seconds) await vi.advanceTimersByTimeAsync(1000);
    }
  };

  /** A server that is good, gone, or says that it failed; what it was asked. */
  function fickle() {
    const asked: string[] = [];
    const state = { loss: null as "unreachable" | "unknown" | "failed" | null };
    const loader = (name: string) => async () => {
      asked.push(name);
      if (state.loss !== null && (name === "index" ? state.loss === "unreachable" : true))
        throw new LoadError("lost", state.loss);
      return name;
    };
    return { asked, state, loader };
  }

  it("ask a server that went away for its index alone, and seldom", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const { asked, state, loader } = fickle();
    const runs = Array.from({ length: 10 }, (_, i) => `e${i}`);
    version.value++;
    const open = [show("index", "", loader("index"))];
    await pass(0);
    open.push(...runs.map((key, i) => show(key, "", loader(key), i > 5)));
    await pass(0);
    expect(asked.splice(0)).toEqual(["index", ...runs]);
    state.loss = "unreachable";
    version.value++; // TensorBoard is reloaded
    await pass(241);
    // After 0, 5, 15, 35, 75, 135 and 195 seconds.
    expect(asked.splice(0)).toEqual(Array(7).fill("index"));
    state.loss = null;
    await pass(60);
    expect(asked).toEqual(["index", ...runs]);
    vi.useRealTimers();
    for (const one of open) one.close();
  });

  it.each(["failed", "unknown"] as const)(
    "keep what was known, and ask again for what %s after growing pauses",
    async (loss) => {
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
      const { asked, state, loader } = fickle();
      const [key, known] = [`new ${loss}`, `known ${loss}`];
      const read = (name: string) => resource(name, String(state.loss === null), loader(name)).peek();
      version.value++;
      const index = show("index", "", loader("index"));
      await pass(0);
      const first = show(known, "true", loader(known));
      await pass(0);
      const at = read(known).at;
      expect(read(known)).toEqual({ value: known, error: null, loading: false, at: Date.now() });
      first.close();
      await pass(1);
      state.loss = loss;
      const open = [show(known, "false", loader(known)), show(key, "false", loader(key))];
      await pass(0);
      asked.length = 0;
      expect(read(known)).toEqual({ value: known, error: "lost", loading: false, at });
      expect(read(key)).toMatchObject({ value: null, error: "lost" });
      await pass(200);
      expect(asked.filter((name) => name === key)).toHaveLength(6); // after 5, 15, 35, 75, 135, 195 seconds
      expect(asked.filter((name) => name === "index")).toHaveLength(loss === "unknown" ? 6 : 0);
      state.loss = null;
      retry();
      await pass(0);
      expect([key, known].map((name) => resource(name, "false", loader(name)).peek().error)).toEqual([null, null]);
      vi.useRealTimers();
      for (const one of [index, ...open]) one.close();
    },
  );

  it("say that an answer is late, hold nothing up meanwhile, and show it when it comes", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const { asked, loader, answer } = server();
    const keys = ["f1", "f2", "f3", "f4"];
    const open = keys.map((key) => show(key, "", loader(key), true));
    await pass(9);
    const read = (key: string) => resource(key, "", loader(key), () => 1, true).peek();
    expect(asked).toEqual(keys.slice(0, 2));
    expect(read("f1")).toMatchObject({ value: null, error: null, loading: true });
    await pass(2);
    expect(asked).toEqual(keys);
    expect(read("f1").error).toContain("hasn't answered yet");
    for (const key of keys) answer(key);
    await pass(1);
    expect(keys.map(read)).toMatchObject(keys.map((key) => ({ value: key, error: null, loading: false })));
    expect(loading.value).toBe(false);
    vi.useRealTimers();
    for (const one of open) one.close();
  });
});
