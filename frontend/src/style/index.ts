/** All styles, in the order in which they apply. Those of the views that are loaded apart come with them. */

import { DARK, LIGHT, type Theme, variablesOf } from "../draw/theme";
import audit from "./audit.css";
import base from "./base.css";
import floating from "./floating.css";
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

const views = sheetOf();

/** Puts the styles on the page, with a place for those of the views. */
export function adoptStyles(): void {
  const [before, after] = [
    sheetOf(colors(":root", LIGHT), colors(":root.dark", DARK), base, sidebar, frame, tables),
    sheetOf(floating, audit, small),
  ];
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, before, views, after];
}

/** Fills that place. */
export const styleViews = (css: string): void => views.replaceSync(css);
