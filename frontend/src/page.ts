/** The page in its frame, from the first render on. */

import { createElement, render as mount, options } from "preact";
import { watchHost, watchTheme, watchVisible } from "./host";
import { useEarly } from "./server/fetch";
import { App } from "./shell/app";
import { listenToKeys } from "./shell/keys";
import { askFirst } from "./state/answers";
import { awaitFirstData } from "./state/firstdata";
import { followAll } from "./state/followers";
import { listenToInputs, watch } from "./state/frames";
import { version } from "./state/resource";
import { indexOf } from "./state/runs";
import { dark, followUrl, helpOpen, hostRuns, hover, page, tables } from "./state/store";
import { adoptStyles } from "./style";

// Requests go out in the microtask after a change: what is rendered meanwhile isn't waited for.
options.debounceRendering = (render) => queueMicrotask(() => queueMicrotask(render));

/** @param index the answer that was requested while the page loaded. */
export function show(index: Promise<Response>): void {
  useEarly(index);
  // Under way before the first render, as what follows from it.
  indexOf();
  askFirst();
  adoptStyles();
  const root = document.documentElement;
  root.lang = "en";
  document.title = "PastNet";
  // The background first: TensorBoard's frame is white even in dark mode.
  watchTheme((isDark) => {
    dark.value = isDark;
    root.classList.toggle("dark", isDark);
  });
  followUrl();
  let [visible, stale] = [true, false];
  const reload = () => {
    stale = !visible;
    if (visible) version.value++;
  };
  watchVisible((now) => {
    visible = now;
    if (stale) reload();
  });
  watchHost((names) => {
    hostRuns.value = names;
  }, reload);
  awaitFirstData(reload);
  watch([page, version, hover, tables, dark, helpOpen, hostRuns]);
  listenToKeys();
  listenToInputs();
  followAll();
  const place = document.createElement("div");
  document.body.append(place);
  mount(createElement(App, null), place);
}
