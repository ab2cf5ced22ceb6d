/** How wide texts are. */

let context: CanvasRenderingContext2D | null = null;
let family = "";

/** How wide a text is in a font of CSS. */
export function textWidth(text: string, font: string): number {
  context ??= document.createElement("canvas").getContext("2d");
  if (!context) return 0;
  context.font = font;
  return context.measureText(text).width;
}

/** The same on the page, whose font doesn't change. */
export function pageTextWidth(text: string, size: number): number {
  family ||= getComputedStyle(document.body).fontFamily;
  return textWidth(text, `${size}px ${family}`);
}

/** As much of a text as there is room for; an ellipsis replaces the rest. */
export function fitted(text: string, room: number, widthOf: (text: string) => number): string {
  if (widthOf(text) <= room) return text;
  const letters = [...text];
  const cut = (count: number) => `${letters.slice(0, count).join("")}…`;
  let [fits, beyond] = [0, letters.length];
  while (beyond - fits > 1) {
    const middle = (fits + beyond) >> 1;
    if (widthOf(cut(middle)) <= room) fits = middle;
    else beyond = middle;
  }
  return cut(fits);
}
