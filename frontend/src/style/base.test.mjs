// Colours of the style sheet: readable, and those that the canvases draw with.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { contrast } from "../draw/colour.fixtures";
import { DARK, LIGHT, variablesOf } from "../draw/theme";

const base = readFileSync(new URL("./base.css", import.meta.url), "utf8");

/** The variables of a theme in base.css; the dark one changes some of the light one's. That a colour isn't quite opaque can't be seen. */
function variables(dark) {
  const found = new Map();
  for (const selector of dark ? [":root {", ":root.dark {"] : [":root {"]) {
    const block = base.slice(base.indexOf(selector)).split("}")[0];
    for (const [, name, value] of block.matchAll(/--([\w-]+):\s*(#[0-9a-f]{6})(?:fe)?;/g)) found.set(name, value);
  }
  for (const [name, value] of Object.entries(variablesOf(dark ? DARK : LIGHT))) found.set(name, value);
  return found;
}

const ON_PAPER = ["text", "muted", "violated-text", "danger"].flatMap((text) =>
  ["bg", "panel", "hover"].map((paper) => [text, paper]),
);
const PAIRS = [
  ...ON_PAPER,
  ["violated-text", "violated-bg"],
  ["text", "violated-bg"],
  ["pill-text", "pill"],
  ["badge-moving-text", "badge-moving"],
];

it("takes no colour of the pictures from anywhere else", () => {
  for (const name of Object.keys(variablesOf(LIGHT))) expect(base).not.toContain(`--${name}:`);
});

describe.each([
  ["light", LIGHT],
  ["dark", DARK],
])("the page's style sheet, %s", (_, theme) => {
  const found = variables(theme.dark);
  const of = (name) => found.get(name) ?? "missing";

  it.each(PAIRS)("has %s readable on %s", (text, paper) => {
    expect(contrast(of(text), of(paper))).toBeGreaterThanOrEqual(4.5);
  });
});
