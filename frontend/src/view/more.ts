/** The views that the first picture doesn't need: a part of its own. */

export { CompareView as compare } from "./compare";
export { FunctionView as function } from "./function";
export { LayerView as layer } from "./layer";
