/** The views, most of them in a part of the page that is loaded apart: the first picture doesn't need it. */

import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import type { View } from "../../model/hash";
import { NetworkView } from "../network/network";
import { begin, finish } from "../state/idle";
import { styleViews } from "../style";

type Views = Partial<Record<View, ComponentType>>;

const views = signal<Views | Error>({ network: NetworkView });
let asked = false;

/** Loads all views, once; a change to one then costs nothing and needs no server. */
export async function loadViews(): Promise<void> {
  if (asked) return;
  asked = true;
  begin();
  try {
    const { css, ...more } = await import("./more");
    styleViews(css);
    views.value = { network: NetworkView, ...more };
  } catch {
    // Trying again needs another page: browsers keep what an import gave, a failure too.
    views.value = new Error(
      "Could not show the view: expected a part of this page, got none. See whether TensorBoard still runs, then reload.",
    );
  }
  finish();
}

/** The component of a view, or why there is none; undefined while it is being loaded. */
export function partOf(view: View): ComponentType | Error | undefined {
  if (view === "network") return NetworkView;
  const found = views.value;
  if (found instanceof Error) return found;
  if (!found[view]) queueMicrotask(() => void loadViews());
  return found[view];
}
