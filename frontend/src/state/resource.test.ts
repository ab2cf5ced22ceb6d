import { effect } from "@preact/signals";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type Ask, UNCHANGED } from "../server/fetch";
import { resource, version } from "./resource";

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

  it("ask a server that went away for its index alone, and seldom", async () => {
    const asked: string[] = [];
    let gone = false;
    const loader = (name: string) => async () => {
      asked.push(name);
      // It goes while ten runs are asked for.
      gone ||= asked.length === 5;
      if (gone) throw new Error("gone");
      return name;
    };
    const draw = async () => {
      for (let turns = 0; turns < 20; turns++) {
        await Promise.resolve();
        for (const one of frames.splice(0)) one();
      }
    };
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    version.value++;
    const open = [show("index", "", loader("index"))];
    await draw();
    const runs = Array.from({ length: 10 }, (_, i) => `e${i}`);
    open.push(...runs.map((key, i) => show(key, "", loader(key), i > 5)));
    await draw();
    expect(asked).toEqual(["index", ...runs]);
    version.value++; // TensorBoard is reloaded
    for (let second = 0; second < 241; second++) {
      await draw();
      await vi.advanceTimersByTimeAsync(1000);
    }
    expect(asked.slice(11)).toEqual(Array(17).fill("index"));
    gone = false;
    await vi.advanceTimersByTimeAsync(15_000);
    await draw();
    expect(asked.slice(28)).toEqual(["index", ...runs]);
    vi.useRealTimers();
    for (const one of open) one.close();
  });
});
