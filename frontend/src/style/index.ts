/** All styles, in the order in which they apply. Those of what is loaded apart come with it. */

import { DARK, LIGHT, type Theme, variablesOf } from "../draw/theme";
import base from "./base.css";
import frame from "./frame.css";
import sidebar from "./sidebar.css";
import small from "./small.css";
import tables from "./tables.css";

const colors = (selector: string, theme: Theme): string =>
  `${selector}{${Object.entries(variablesOf(theme))
    .map(([name, value]) => `--${name}:${value}`)
    .join(";")}}`;

function sheetOf(...texts: string[]): CSSStyleSheet {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(texts.join("\n"));
  return sheet;
}

const [views, late] = [sheetOf(), sheetOf()];

/** Puts the styles on the page, with places for those that are loaded apart. */
export function adoptStyles(): void {
  const before = sheetOf(colors(":root", LIGHT), colors(":root.dark", DARK), base, sidebar, frame, tables);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, before, views, late, sheetOf(small)];
}

/** Fills the place of the views, and that of what is loaded after them. */
export const styleViews = (css: string): void => views.replaceSync(css);
export const styleLate = (css: string): void => late.replaceSync(css);
