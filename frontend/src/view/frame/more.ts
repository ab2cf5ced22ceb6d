/** The views that the first picture doesn't need: a part of its own. */

export { CompareView as compare } from "../compare/compare";
export { FunctionView as function } from "../function/function";
export { LayerView as layer } from "../layer/layer";
export { css } from "../style/views";
