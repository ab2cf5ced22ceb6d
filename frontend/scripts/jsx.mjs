// Elements are made by calls of `h`: shorter than those of the automatic runtime, by 1 % of the bundle.
export { Fragment as __fragment, h as __h } from "preact";
