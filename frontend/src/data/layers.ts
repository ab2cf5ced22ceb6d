/** The layers of all shown networks as one tree in forward order, and its rows. */

import type { LayerInfo } from "../server/types";

interface RowOf<Kind> {
  kind: Kind;
  /** Of the layer or group, "" of the total. */
  id: string;
  label: string;
  depth: number;
  layers: string[];
  channels: number;
}

export interface Group extends RowOf<"group"> {
  closed: boolean;
}

export type Row = (RowOf<"layer"> & { layer: LayerInfo }) | Group | RowOf<"total">;

/** Forward order over several networks: a layer that only a later one has comes after its predecessor there. */
export function mergeLayers<T extends { id: string }>(networks: readonly { layers: readonly T[] }[]): T[] {
  const merged: T[] = [];
  for (const network of networks) {
    let next = 0;
    for (const layer of network.layers) {
      const place = merged.findIndex((other) => other.id === layer.id);
      if (place >= 0) next = place + 1;
      else merged.splice(next++, 0, layer);
    }
  }
  return merged;
}

interface Node {
  id: string;
  name: string;
  children: (Node | LayerInfo)[];
}

const isNode = (child: Node | LayerInfo): child is Node => "children" in child;

/** "block_1" of block_1_expand: many networks number their blocks in names instead of nesting them. */
const stem = ({ name }: LayerInfo): string => /^(.*?_?\d+)[_.-]./.exec(name)?.[1] ?? "";

const prefixOf = (layer: LayerInfo): string => (stem(layer) === "" ? "" : `${layer.group}/${stem(layer)}`);

function build(layers: readonly LayerInfo[]): Node {
  const root: Node = { id: "", name: "", children: [] };
  const prefixes = layers.map(prefixOf);
  for (const layer of layers) {
    let node = root;
    const prefix = prefixOf(layer);
    const shared = prefix !== "" && prefixes.indexOf(prefix) < prefixes.lastIndexOf(prefix);
    for (const part of (shared ? prefix : layer.group).split("/").filter(Boolean)) {
      const id = node.id === "" ? part : `${node.id}/${part}`;
      let next = node.children.find((child): child is Node => isNode(child) && child.id === id);
      if (!next) {
        next = { id, name: part, children: [] };
        node.children.push(next);
      }
      node = next;
    }
    node.children.push(layer);
  }
  return root;
}

const leaves = (node: Node): LayerInfo[] => node.children.flatMap((child) => (isNode(child) ? leaves(child) : [child]));

/** Of more layers groups are closed at first. */
const MOST_OPEN = 60;

/**
 * Rows of the tree below the total. Groups with one child are joined with it.
 *
 * @param flat shows bare leaves with full paths, as a filter does.
 */
export function treeRows(
  layers: readonly LayerInfo[],
  closed: ReadonlySet<string>,
  filter: RegExp | null,
  flat = filter !== null,
): Row[] {
  const shown = filter ? layers.filter((layer) => filter.test(layer.id)) : layers;
  const rows: Row[] = [];
  const over = (list: readonly LayerInfo[]) => ({
    layers: list.map((layer) => layer.id),
    channels: list.reduce((sum, layer) => sum + layer.channels, 0),
  });
  const addLayer = (layer: LayerInfo, label: string, depth: number) =>
    rows.push({ kind: "layer", id: layer.id, label, depth, layer, ...over([layer]) });
  // With many layers groups are closed at first; the ids are those that were toggled since.
  const folded = shown.length > MOST_OPEN;
  const walk = (node: Node, depth: number, prefix: string, shared = "") => {
    for (const child of node.children) {
      if (!isNode(child)) {
        const own = shared && child.name.startsWith(`${shared}_`) ? child.name.slice(shared.length + 1) : child.name;
        addLayer(child, prefix + own, depth);
        continue;
      }
      const label = `${prefix}${child.name}`;
      if (child.children.length === 1) {
        walk(child, depth, `${label}/`);
        continue;
      }
      const isClosed = closed.has(child.id) !== folded;
      rows.push({ kind: "group", id: child.id, label, depth, closed: isClosed, ...over(leaves(child)) });
      if (!isClosed) walk(child, depth + 1, "", child.name);
    }
  };
  if (shown.length > 0) {
    const label = filter ? "Matching layers" : "All layers";
    rows.push({ kind: "total", id: "", label, depth: 0, ...over(shown) });
  }
  if (filter || flat) for (const layer of shown) addLayer(layer, layer.id, 0);
  else walk(build(shown), 0, "");
  return rows;
}
