import { describe, expect, it } from "vitest";
import type { LayerInfo } from "../server/types";
import { mergeLayers, treeRows } from "./layers";

function layer(id: string, channels = 2): LayerInfo {
  const at = id.lastIndexOf("/");
  return {
    id,
    group: at < 0 ? "" : id.slice(0, at),
    name: id.slice(at + 1),
    type: "Dense",
    variable: `${id}/kernel`,
    role: "kernel",
    shape: [1, channels],
    axis: "-1",
    verified: true,
    follows: false,
    channels,
    weights: channels,
    variables: [],
  };
}

const layers = ["conv1", "block1/a", "block1/b", "block2/only/c", "head"].map((id) => layer(id));
const labels = (closed: string[] = [], filter: RegExp | null = null) =>
  treeRows(layers, new Set(closed), filter).map((row) => `${"  ".repeat(row.depth)}${row.kind}:${row.label}`);

describe("treeRows", () => {
  it("keeps the forward order and joins groups with one child", () => {
    expect(labels()).toEqual([
      "total:All layers",
      "layer:conv1",
      "group:block1",
      "  layer:a",
      "  layer:b",
      "layer:block2/only/c",
      "layer:head",
    ]);
  });

  it("hides what a closed group holds, and still sums it", () => {
    expect(labels(["block1"])).not.toContain("  layer:a");
    const [total, , group] = treeRows(layers, new Set(["block1"]), null);
    expect(total.layers).toHaveLength(5);
    expect(group.layers).toEqual(["block1/a", "block1/b"]);
  });

  it("shows full paths under a filter, and nothing where none matches", () => {
    expect(labels([], /block/)).toEqual([
      "total:Matching layers",
      "layer:block1/a",
      "layer:block1/b",
      "layer:block2/only/c",
    ]);
    expect(labels([], /nowhere/)).toEqual([]);
  });

  it("takes names of prototypes as names", () => {
    const rows = treeRows([layer("__proto__/constructor"), layer("__proto__/x")], new Set(), null);
    expect(rows.map((row) => row.id)).toEqual(["", "__proto__", "__proto__/constructor", "__proto__/x"]);
  });
});

it("merges networks: a layer that only one has comes after its predecessor there", () => {
  const merged = mergeLayers([
    { layers: [layer("a"), layer("c")] },
    { layers: [layer("a"), layer("b"), layer("c"), layer("d")] },
  ]);
  expect(merged.map((one) => one.id)).toEqual(["a", "b", "c", "d"]);
});

describe("many layers", () => {
  const blocks = Array.from({ length: 31 }, (_, b) => [layer(`block_${b}_expand`), layer(`block_${b}_project`)]).flat();
  const shown = (toggled: string[]) => treeRows(blocks, new Set(toggled), null).slice(1);

  it("are closed groups at first, by the numbers in their names", () => {
    expect(shown([]).map(({ label }) => label)).toEqual(Array.from({ length: 31 }, (_, b) => `block_${b}`));
    expect(treeRows(blocks.slice(0, 60), new Set(), null, false, 90)).toHaveLength(1 + 30 + 60);
  });

  it("are cells of repeated blocks, by module", () => {
    const own = [...blocks.slice(0, 3), ...blocks.slice(4)];
    const [first, second] = treeRows(own, new Set(), null).slice(1);
    expect(first).toMatchObject({ cells: ["block_0_expand", "block_0_project"], modules: ["expand", "project"] });
    expect(second).toMatchObject({ label: "block_1_expand" });
    const third = treeRows(blocks, new Set(), null)[3];
    expect(third).toMatchObject({ cells: ["block_2_expand", "block_2_project"], modules: null });
  });

  it("are rows of modules where there are too many blocks, a cell for each", () => {
    const deep = Array.from({ length: 50 }, (_, b) => [layer(`net/${b}/q`), layer(`net/${b}/k`)]).flat();
    const [net, q, k] = treeRows([layer("in"), ...deep], new Set(), null, false, 40).slice(2);
    expect([net.id, q.label, k.label]).toEqual(["net", "q", "k"]);
    expect(q).toMatchObject({ closed: true, modules: Array.from({ length: 50 }, (_, b) => String(b)) });
    expect(k).toMatchObject({ cells: Array.from({ length: 50 }, (_, b) => `net/${b}/k`), modules: null });
    expect(treeRows([layer("in"), ...deep], new Set([q.id]), null, false, 40)).toHaveLength(5 + 50);
  });

  it("open from the top down until the screen is full", () => {
    const tree = ["a/x/1", "a/x/2", "a/y/1", "a/y/2", "b/1", "b/2", "b/3"].map((id) => layer(id));
    const at = (capacity: number) => treeRows(tree, new Set(), null, false, capacity).map(({ id }) => id);
    expect(at(2)).toEqual(["", "a", "b"]);
    expect(at(4)).toEqual(["", "a", "a/x", "a/y", "b"]);
    expect(at(7)).toEqual(["", "a", "a/x", "a/y", "b", "b/1", "b/2", "b/3"]);
    expect(at(11)).toHaveLength(1 + 11);
  });

  it("open where they were toggled, without the name of the group", () => {
    const opened = shown(["block_1"]).slice(0, 5);
    expect(opened.map(({ label }) => label)).toEqual(["block_0", "block_1", "expand", "project", "block_2"]);
    expect(opened[2].id).toBe("block_1_expand");
  });
});
