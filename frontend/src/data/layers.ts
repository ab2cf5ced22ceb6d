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
  /** Of a closed one of repeated blocks: its layers by module, null where it lacks one, as its siblings have them. */
  cells: readonly (string | null)[] | null;
  /** What the modules are called, in the first of the blocks; null elsewhere. */
  modules: readonly string[] | null;
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

/** What is below a group: those of one child are joined with it. */
interface Entry {
  label: string;
  node: Node | null;
  layer: LayerInfo | null;
}

function entriesOf(node: Node): Entry[] {
  return node.children.map((child) => {
    let [label, own] = ["", child];
    while (isNode(own) && own.children.length === 1) {
      label += `${own.name}/`;
      own = own.children[0];
    }
    const [inner, layer] = isNode(own) ? [own, null] : [null, own];
    return { label: label + own.name, node: inner, layer };
  });
}

/** The name of a layer within a block. */
function moduleOf(block: Node, { id, name }: LayerInfo): string {
  if (id.startsWith(`${block.id}/`)) return id.slice(block.id.length + 1);
  return name.startsWith(`${block.name}_`) ? name.slice(block.name.length + 1) : name;
}

/** "block" of "block_12", "" of "12"; null without a number at the end. */
const seriesOf = ({ name }: Node): string | null => /^(.*?)\d+$/.exec(name)?.[1] ?? null;

/** As few blocks as are a repetition; most modules that a block may have for its cells to be told apart. */
const [FEWEST_BLOCKS, MOST_MODULES] = [3, 48];

/** The blocks of a group that repeat one another, by what they are called, with all their modules in order. */
function repeated(entries: readonly Entry[]): Repetition[] {
  const series = new Map<string, Node[]>();
  for (const { node } of entries) {
    const name = node && seriesOf(node);
    if (node && name !== null) series.set(name, [...(series.get(name) ?? []), node]);
  }
  return [...series.values()].flatMap((blocks) => {
    const own = blocks.map((block) => leaves(block).map((layer) => ({ id: moduleOf(block, layer) })));
    const modules = mergeLayers(own.map((list) => ({ layers: list }))).map(({ id }) => id);
    const full = own.reduce((sum, list) => sum + list.length, 0) / (modules.length * blocks.length);
    const alike = blocks.length >= FEWEST_BLOCKS && modules.length <= MOST_MODULES && full >= 0.5;
    return alike ? [{ blocks, modules }] : [];
  });
}

/** How the tree is opened at first: which groups are closed, and which of them are rows of cells. */
interface Fold {
  closed: Set<string>;
  cells: Map<string, readonly (string | null)[]>;
  modules: Map<string, readonly string[]>;
  /** More blocks than there are rows for: by the first of them, a row for each module instead, a cell for each block. */
  across: Map<Node, Repetition>;
}

interface Repetition {
  blocks: Node[];
  modules: string[];
}

/** Opens groups from the top down until so many rows are full; blocks that repeat one another are the last. */
function foldOf(root: Node, capacity: number): Fold {
  const fold: Fold = { closed: new Set(), cells: new Map(), modules: new Map(), across: new Map() };
  const blocks = new Set<Node>();
  const waiting: { node: Node; size: number }[] = [];
  let all = 0;
  const visit = (node: Node) => {
    const entries = entriesOf(node);
    all += entries.length;
    for (const { blocks: own, modules } of repeated(entries)) {
      own.forEach((block, i) => {
        const ids = new Map(leaves(block).map((layer) => [moduleOf(block, layer), layer.id]));
        blocks.add(block);
        const cells = modules.map((name) => ids.get(name) ?? null);
        fold.cells.set(block.id, cells);
        if (i === 0) fold.modules.set(block.id, modules);
      });
    }
    for (const { node: inner } of entries) if (inner) visit(inner);
  };
  visit(root);
  if (all <= capacity) return { ...fold, cells: new Map(), modules: new Map() };
  let rows = entriesOf(root).length;
  const queue = (node: Node) => {
    for (const { node: inner } of entriesOf(node))
      if (inner) waiting.push({ node: inner, size: entriesOf(inner).length });
  };
  queue(root);
  for (let i = 0; i < waiting.length; i++) {
    const { node, size } = waiting[i];
    const across = repeated(entriesOf(node)).filter(({ modules, blocks: own }) => modules.length < own.length);
    const saved = across.reduce((sum, { modules, blocks: own }) => sum + own.length - modules.length, 0);
    if (blocks.has(node) || rows + size - saved > capacity) fold.closed.add(node.id);
    else {
      const fits = rows + size <= capacity;
      if (!fits) for (const repetition of across) fold.across.set(repetition.blocks[0], repetition);
      rows += fits ? size : size - saved;
      queue(node);
    }
  }
  return fold;
}

/** So many rows are full where nothing else is known. */
const CAPACITY = 60;

/**
 * Rows of the tree below the total. Groups with one child are joined with it.
 *
 * @param toggled groups that were closed since, or opened where they are closed at first.
 * @param flat shows bare leaves with full paths, as a filter does.
 * @param capacity rows that there is room for: as many groups are open.
 */
export function treeRows(
  layers: readonly LayerInfo[],
  toggled: ReadonlySet<string>,
  filter: RegExp | null,
  flat = filter !== null,
  capacity = CAPACITY,
): Row[] {
  const shown = filter ? layers.filter((layer) => filter.test(layer.id)) : layers;
  const rows: Row[] = [];
  const over = (list: readonly LayerInfo[]) => ({
    layers: list.map((layer) => layer.id),
    channels: list.reduce((sum, layer) => sum + layer.channels, 0),
  });
  const addLayer = (layer: LayerInfo, label: string, depth: number) =>
    rows.push({ kind: "layer", id: layer.id, label, depth, layer, ...over([layer]) });
  const walk = (node: Node, depth: number, fold: Fold) => {
    for (const { label, node: inner, layer } of entriesOf(node)) {
      if (layer) addLayer(layer, ownLabel(label, layer, node), depth);
      const across = inner && fold.across.get(inner);
      if (across) addAcross(across, node.id, depth);
      if (!inner || hidden(fold, inner)) continue;
      const [id, closed] = [inner.id, toggled.has(inner.id) !== fold.closed.has(inner.id)];
      const [cells, modules] = [fold.cells.get(id) ?? null, fold.modules.get(id) ?? null];
      const own = { closed, cells: closed ? cells : null, modules: closed ? modules : null };
      rows.push({ kind: "group", id, label, depth, ...own, ...over(leaves(inner)) });
      if (!closed) walk(inner, depth + 1, fold);
    }
  };
  const addAcross = ({ blocks, modules }: Repetition, parent: string, depth: number) => {
    const maps = blocks.map((block) => new Map(leaves(block).map((layer) => [moduleOf(block, layer), layer])));
    modules.forEach((name, i) => {
      const id = `${parent}/*/${name}`;
      const own = maps.flatMap((layersOf) => layersOf.get(name) ?? []);
      const closed = !toggled.has(id);
      const cells = closed ? maps.map((layersOf) => layersOf.get(name)?.id ?? null) : null;
      const heads = closed && i === 0 ? blocks.map((block) => block.name) : null;
      rows.push({ kind: "group", id, label: name, depth, closed, cells, modules: heads, ...over(own) });
      if (!closed) for (const layer of own) addLayer(layer, layer.id, depth + 1);
    });
  };
  if (shown.length > 0) {
    const label = filter ? "Matching layers" : "All layers";
    rows.push({ kind: "total", id: "", label, depth: 0, ...over(shown) });
  }
  if (filter || flat) for (const layer of shown) addLayer(layer, layer.id, 0);
  else {
    const root = build(shown);
    walk(root, 0, foldOf(root, capacity));
  }
  return rows;
}

/** Whether a block is drawn as cells of the rows of its modules. */
const hidden = (fold: Fold, block: Node): boolean =>
  [...fold.across.values()].some(({ blocks }) => blocks.includes(block));

/** The name of a layer without that of its group, where it begins with it. */
const ownLabel = (label: string, layer: LayerInfo, group: Node): string =>
  label === layer.name && group.name !== "" && label.startsWith(`${group.name}_`)
    ? label.slice(group.name.length + 1)
    : label;
