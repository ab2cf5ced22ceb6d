import { expect, it } from "vitest";
import { fitted } from "./text";

/** An M is four times as wide as an i, and other letters twice. */
const widthOf = (text: string): number =>
  [...text].reduce((sum, letter) => sum + (letter === "M" ? 4 : letter === "i" ? 1 : 2), 0);

it.each([
  ["MMMM", 16, "MMMM"],
  ["MMMM", 15, "MMM…"],
  ["iiiiiiiiiiiiiiii", 16, "iiiiiiiiiiiiiiii"],
  ["iiiiiiiiiiiiiiiii", 16, "iiiiiiiiiiiiii…"],
  ["😀😀😀", 5, "😀…"],
  ["MM", 1, "…"],
])("of %s there is room in %d for %s", (text, room, shown) => {
  expect(fitted(text, room, widthOf)).toBe(shown);
});
