/** All views by name; the one that newcomers see comes with the page. */

import type { ViewName } from "../data/urlstate";
import { findings } from "./findings/findings";
import type { RegisteredView } from "./view";

export const VIEWS: Record<ViewName, RegisteredView> = {
  findings: { title: "Findings", load: async () => findings },
  network: { title: "Network", load: async () => (await import("./network/network")).network },
  layer: { title: "Layer", load: async () => (await import("./layer/layer")).layer },
  compare: { title: "Compare", load: async () => (await import("./compare/compare")).compare },
  function: { title: "Function", load: async () => (await import("./function/function")).functions },
};
