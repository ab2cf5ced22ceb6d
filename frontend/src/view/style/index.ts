/** All styles, in the order in which they apply. */

import audit from "./audit.css";
import base from "./base.css";
import compare from "./compare.css";
import floating from "./floating.css";
import frame from "./frame.css";
import fn from "./function.css";
import inspector from "./inspector.css";
import layer from "./layer.css";
import network from "./network.css";
import sidebar from "./sidebar.css";
import small from "./small.css";
import tables from "./tables.css";

export const css = [base, sidebar, frame, network, layer, inspector, tables, compare, fn, floating, audit, small].join(
  "\n",
);
