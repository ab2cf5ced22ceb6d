/** The entry that TensorBoard's frame imports: `render()` is called once. */

import { createElement, render as mount } from "preact";
import { watchHost, watchTheme, watchVisible } from "./host";
import { App } from "./view/frame/app";
import { indexOf } from "./view/state/data";
import { watch } from "./view/state/idle";
import { listenToKeys } from "./view/state/keys";
import { followPointer } from "./view/state/late";
import { version } from "./view/state/resource";
import { dark, followUrl, helpOpen, hostRuns, hover, page, tables } from "./view/state/store";
import { css } from "./view/style";

// Under way before the first render.
indexOf();

export function render(): void {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  const root = document.documentElement;
  root.lang = "en";
  document.title = "PastNet";
  // The background first: TensorBoard's frame is white, also in its dark mode.
  watchTheme((isDark) => {
    dark.value = isDark;
    root.classList.toggle("dark", isDark);
  });
  followUrl();
  let visible = true;
  let stale = false;
  watchVisible((now) => {
    visible = now;
    if (now && stale) {
      stale = false;
      version.value++;
    }
  });
  watchHost(
    (names) => {
      hostRuns.value = names;
    },
    () => {
      if (visible) version.value++;
      else stale = true;
    },
  );
  watch([page, version, hover, tables, dark, helpOpen, hostRuns]);
  listenToKeys();
  followPointer();
  const place = document.createElement("div");
  document.body.append(place);
  mount(createElement(App, null), place);
}
