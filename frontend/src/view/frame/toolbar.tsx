/** The bar on top: layer filter, views, copy link, download. */

import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { copyText, hashUrl, saveAs } from "../../host";
import { formatCount } from "../../model/format";
import { toPairs, VIEWS, type View } from "../../model/hash";
import { routeUrl } from "../../wire/client";
import { type CsvFile, compareFiles } from "../compare/csv";
import { chosen, pairLayer } from "../compare/pair";
import { probedRuns } from "../function/places";
import { Button, Icon } from "../shared/bits";
import { showView } from "../state/actions";
import { cursor } from "../state/cursor";
import { activeLayer, activeRun, shownRuns, threshold } from "../state/data";
import { layerFilter, page, rowZoom, sideOpen, spoken, update, variableId, view, zoom } from "../state/store";
import { FilterBox } from "./filterbox";
import { panelPicture } from "./picture";
import { VersusToggle } from "./versus";

const VIEW_TITLES: Record<View, string> = {
  network: "Network",
  layer: "Layer",
  compare: "Compare",
  function: "Function",
};

const copied = signal<"" | "copied" | "failed">("");
const menuOpen = signal(false);

async function copyLink(): Promise<void> {
  const worked = await copyText(hashUrl(toPairs(page.peek())));
  copied.value = worked ? "copied" : "failed";
  spoken.value = worked ? "Link copied" : "The browser didn't allow copying; take the address from the address bar";
  setTimeout(() => (copied.value = ""), 2000);
}

/** The name of a file; of a long part its end, in which layers and runs differ. */
const fileName = (...parts: string[]): string =>
  parts.map((part) => [...part.replace(/[^\p{L}\p{N}._-]+/gu, "_")].slice(-36).join("")).join("-");

async function savePicture(): Promise<void> {
  menuOpen.value = false;
  const panel = document.querySelector<HTMLElement>("main .compare, main .fn-view, main .panel");
  const what = view.value === "layer" ? (activeLayer.value?.id ?? "layer") : view.value;
  const run = view.value === "layer" && activeRun.value ? `${activeRun.value.name}, ` : "";
  const title = `${view.value === "layer" ? what : "PastNet"} · ${run}step ${formatCount(cursor.value)}`;
  const blob = panel ? await panelPicture(panel, title) : null;
  if (blob) saveAs(blob, `${fileName("pastnet", what)}.png`);
}

/** The layer that the view shows, in the views that show one. */
const shownLayer = () =>
  (view.value === "compare" ? pairLayer.value : view.value === "layer" ? activeLayer.value : null)?.id ?? null;

function saveFile({ name, text }: CsvFile): void {
  menuOpen.value = false;
  saveAs(new Blob([text()], { type: "text/csv" }), `${fileName("pastnet", name)}.csv`);
}

function saveCsv(run: string): void {
  menuOpen.value = false;
  const layer = shownLayer();
  const query = { layer, variable: layer ? variableId.value : null, th: threshold.value };
  const url = routeUrl("export.csv", { run, ...(view.value === "function" ? { function: 1 } : query) });
  saveAs(url, `${fileName("pastnet", run, ...(layer ? [layer] : []))}.csv`);
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
  const own = view.value === "layer" ? activeRun.value?.name : null;
  const compared = view.value === "compare" ? chosen.value : view.value === "function" ? probedRuns.value : null;
  const names = (compared ?? shownRuns.value).map((run) => run.name);
  const list = own ? [own, ...names.filter((name) => name !== own)] : names;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: Escape closes the menu from any of its buttons
    <div
      class="download"
      ref={ref}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !menuOpen.value) return;
        event.stopPropagation();
        menuOpen.value = false;
        ref.current?.querySelector<HTMLElement>("button")?.focus();
      }}
    >
      <button
        type="button"
        class="button"
        aria-expanded={menuOpen.value}
        disabled={list.length === 0}
        onClick={() => (menuOpen.value = !menuOpen.value)}
      >
        <Icon name="download" /> <span class="word">Download</span>
      </button>
      {menuOpen.value ? (
        <div class="menu" role="group" aria-label="Download">
          <button type="button" onClick={() => void savePicture()}>
            PNG of the picture
          </button>
          {(view.value === "compare" ? compareFiles() : []).map((file) => (
            <button key={file.name} type="button" onClick={() => saveFile(file)}>
              {file.title}
            </button>
          ))}
          {list.map((name) => (
            <button key={name} type="button" onClick={() => saveCsv(name)}>
              CSV of <bdi>{name}</bdi>
              {view.value === "function"
                ? ", changes of outputs"
                : shownLayer() !== null
                  ? ", this layer"
                  : ", all layers"}
            </button>
          ))}
        </div>
      ) : null}
    </div>
  );
}

/** What is zoomed to; a click shows all again. */
function ZoomChip() {
  const rows = view.value === "layer" ? rowZoom.value : null;
  if (!zoom.value && !rows) return null;
  const text = (what: string, [from, to]: [number, number]) => `${what} ${formatCount(from)} to ${formatCount(to)}`;
  const parts = [zoom.value && text("steps", zoom.value), rows && text("rows", [rows[0] + 1, rows[1]])].filter(Boolean);
  return (
    <Button class="zoom-chip" title="Show all again (0)" onClick={() => update({ zoom: null, rowZoom: null })}>
      {parts.join(", ").replace(/^./, (letter) => letter.toUpperCase())} <Icon name="close" size={14} />
    </Button>
  );
}

export function Toolbar() {
  const layered = activeLayer.value !== null;
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
      <FilterBox
        id="layer-filter"
        label="Filter layers (regex)"
        filter={layerFilter.value}
        onText={(text) => update({ layerFilter: text })}
      />
      <div class="joined" role="group" aria-label="View">
        {VIEWS.map((name) => (
          <Button
            key={name}
            class={view.value === name ? "under" : ""}
            pressed={view.value === name}
            disabled={name === "layer" && !layered}
            onClick={() => view.value !== name && showView(name)}
          >
            {VIEW_TITLES[name]}
          </Button>
        ))}
      </div>
      <VersusToggle />
      <ZoomChip />
      <Button onClick={() => void copyLink()}>
        <Icon name={copied.value === "copied" ? "check" : "link"} />{" "}
        <span class="word">
          {copied.value === "copied" ? "Copied" : copied.value === "failed" ? "Not allowed" : "Copy link"}
        </span>
      </Button>
      <Menu />
    </div>
  );
}
