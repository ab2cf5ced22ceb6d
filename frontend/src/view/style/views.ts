/** The styles of the views that the first picture doesn't need. */

import compare from "./compare.css";
import fn from "./function.css";
import inspector from "./inspector.css";
import layer from "./layer.css";

export const css = [layer, inspector, compare, fn].join("\n");
