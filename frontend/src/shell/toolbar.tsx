/** The bar on top: layer filter, views, copy link, download. */

import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { formatCount } from "../data/format";
import { toPairs, VIEW_NAMES, type ViewName } from "../data/urlstate";
import { copyImage, copyText, hashUrl, saveAs } from "../host";
import { Button, Icon, Switch } from "../parts/widgets";
import { asLoadError } from "../server/errors";
import { cellsOf } from "../state/answers";
import { baselineRun, canDiffer, differs, toggleVersus } from "../state/baseline";
import { cursor } from "../state/cursor";
import { begin, finish } from "../state/frames";
import { showView } from "../state/navigate";
import { zoomedRows } from "../state/rows";
import { activeLayer, activeRun, shownRuns } from "../state/runs";
import { page, sideOpen, spoken, update, view, zoom } from "../state/store";
import { VIEWS } from "../views";
import type { CsvFile } from "../views/view";
import { FilterBox } from "./filterbox";
import { shownView } from "./parts";

const VIEW_TITLES = Object.fromEntries(VIEW_NAMES.map((name) => [name, VIEWS[name].title])) as Record<ViewName, string>;

const copied = signal<"" | "copied" | "failed">("");
const menuOpen = signal(false);

/** The link contains the step even if the cursor follows the end, which moves. */
async function copyLink(): Promise<void> {
  const worked = await copyText(hashUrl(toPairs({ ...page.peek(), step: Math.round(cursor.peek()) })));
  copied.value = worked ? "copied" : "failed";
  spoken.value = worked ? "Link copied" : "Copying is not allowed here. Copy the address from the address bar.";
  setTimeout(() => (copied.value = ""), 2000);
}

/** The most letters of a part of a file's name: three parts and an ending are a name anywhere. */
const MOST_LETTERS = 72;

/** The name of a file; a long part is cut in its middle. */
function fileName(...parts: string[]): string {
  const cut = (letters: string[]) =>
    letters.length <= MOST_LETTERS
      ? letters
      : [...letters.slice(0, MOST_LETTERS / 2), "_", ...letters.slice(1 - MOST_LETTERS / 2)];
  return parts.map((part) => cut([...part.replace(/[^\p{L}\p{N}._-]+/gu, "_")]).join("")).join("-");
}

async function pictureOf(kind: "svg" | "png"): Promise<Blob | null> {
  const { viewPicture } = await import("./picture");
  return viewPicture(document.querySelector("main")!, shownView() ?? { caption: () => "", states: [] }, kind);
}

async function savePicture(kind: "svg" | "png"): Promise<void> {
  const blob = await pictureOf(kind);
  if (blob) saveAs(blob, `${fileName("pastnet", shownView()?.caption() ?? "")}.${kind}`);
}

async function copyPicture(): Promise<void> {
  const blob = await pictureOf("png");
  const worked = blob !== null && (await copyImage(blob));
  spoken.value = worked ? "Picture copied" : "Copying is not allowed here. Save the PNG instead.";
}

/** The file that couldn't be loaded last, and why. */
const unsaved = signal<{ file: CsvFile; why: string } | null>(null);

async function saveFile(file: CsvFile): Promise<void> {
  unsaved.value = null;
  begin();
  try {
    const content = await file.source();
    const blob = typeof content === "string" ? new Blob([content], { type: "text/csv" }) : content;
    saveAs(blob, `${fileName("pastnet", ...file.name)}.csv`);
  } catch (cause) {
    unsaved.value = { file, why: asLoadError(cause).message };
  }
  finish();
}

/** Below the button: which file wasn't saved. */
function Unsaved() {
  if (!unsaved.value) return null;
  const { file, why } = unsaved.value;
  return (
    <div class="menu unsaved" role="alert">
      <p>
        <bdi>{file.title}</bdi>: not saved. {why}
      </p>
      <div>
        <Button onClick={() => void saveFile(file)}>Retry</Button>{" "}
        <Button onClick={() => (unsaved.value = null)}>Close</Button>
      </div>
    </div>
  );
}

function Menu() {
  const ref = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (!menuOpen.value) return;
    const away = (event: PointerEvent) => {
      if (!ref.current?.contains(event.target as Node)) menuOpen.value = false;
    };
    document.addEventListener("pointerdown", away);
    ref.current?.querySelector<HTMLElement>(".menu button")?.focus();
    return () => document.removeEventListener("pointerdown", away);
  }, [menuOpen.value]);
  /** The focus was on what goes with it. */
  const close = () => {
    menuOpen.value = false;
    ref.current?.querySelector("button")?.focus();
  };
  const items: [string, () => unknown][] = [
    ["PNG of the picture", () => savePicture("png")],
    ["SVG of the picture", () => savePicture("svg")],
    ["Copy the picture", copyPicture],
    ...(shownView()?.files() ?? []).map((file): [string, () => unknown] => [file.title, () => saveFile(file)]),
  ];
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: Escape closes the menu from any of its buttons
    <div
      class="download"
      ref={ref}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !menuOpen.value) return;
        event.stopPropagation();
        close();
      }}
      onFocusOut={({ relatedTarget }) => {
        if (relatedTarget && !ref.current?.contains(relatedTarget as Node)) menuOpen.value = false;
      }}
    >
      <button
        type="button"
        class="button"
        aria-expanded={menuOpen.value}
        disabled={shownRuns.value.length === 0}
        onClick={() => {
          unsaved.value = null;
          menuOpen.value = !menuOpen.value;
        }}
      >
        <Icon name="download" /> <span class="word">Download</span>
      </button>
      <Unsaved />
      {menuOpen.value ? (
        <div class="menu" role="group" aria-label="Download">
          {items.map(([title, action]) => (
            <button
              key={title}
              type="button"
              onClick={() => {
                close();
                void action();
              }}
            >
              <bdi>{title}</bdi>
            </button>
          ))}
        </div>
      ) : null}
    </div>
  );
}

/** What is zoomed to; a click shows all again. */
function ZoomChip() {
  const [run, layer] = [activeRun.value, activeLayer.value];
  const cells = view.value === "layer" && run && layer && cellsOf(run.name, layer.id).value;
  const rows = cells ? zoomedRows(cells.channels) : null;
  if (!zoom.value && !rows) return null;
  const text = (what: string, [from, to]: [number, number]) => `${what} ${formatCount(from)} to ${formatCount(to)}`;
  const parts = [zoom.value && text("steps", zoom.value), rows && text("rows", [rows[0] + 1, rows[1]])].filter(Boolean);
  return (
    <Button class="zoom-chip" title="Show all again (0)" onClick={() => update({ zoom: null, rowZoom: null })}>
      {parts.join(", ").replace(/^./, (letter) => letter.toUpperCase())} <Icon name="close" size={14} />
    </Button>
  );
}

/** Values or differences from the baseline. */
function VersusToggle() {
  if (view.value !== "network" && view.value !== "layer") return null;
  const hint = `Differences from ${baselineRun.value?.name ?? "the baseline"} (D)`;
  return (
    <Switch
      label="Values or differences"
      options={["values", "versus"]}
      titles={{ values: "Values", versus: "vs baseline" }}
      value={differs.value ? "versus" : "values"}
      onPick={toggleVersus}
      hint={(option) => (option === "versus" ? hint : undefined)}
      disabled={(option) => option === "versus" && !canDiffer.value}
    />
  );
}

/** A view of outputs is offered where a run has any, or a link leads to it. */
const offered = (): ViewName[] =>
  VIEW_NAMES.filter((name) => name !== "function" || view.value === name || shownRuns.value.some(({ probe }) => probe));

export function Toolbar() {
  return (
    <div class="toolbar">
      <Button
        class="small side-toggle"
        pressed={sideOpen.value}
        label="Runs and legend"
        onClick={() => (sideOpen.value = !sideOpen.value)}
      >
        <Icon name="menu" />
      </Button>
      <FilterBox id="layer-filter" label="Filter layers (regex)" field="layerFilter" />
      <Switch
        label="View"
        options={offered()}
        titles={VIEW_TITLES}
        value={view.value}
        onPick={(name) => showView(name, shownView()?.layer() ?? null)}
        disabled={(name) => name === "layer" && activeLayer.value === null}
      />
      <VersusToggle />
      <ZoomChip />
      <div class="actions">
        <Button onClick={() => void copyLink()}>
          <Icon name={copied.value === "copied" ? "check" : "link"} />{" "}
          <span class="word">
            {copied.value === "copied" ? "Copied" : copied.value === "failed" ? "Not allowed" : "Copy link"}
          </span>
        </Button>
        <Menu />
      </div>
    </div>
  );
}
