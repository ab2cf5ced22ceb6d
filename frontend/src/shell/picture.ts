/** A panel as a PNG: its canvases, and its texts where they stand. */

/** Controls say nothing on paper. */
const SKIPPED = ".offscreen, .button, .controls, .violation-mark";
const HEAD = 30;

/**
 * Paints the visible part of a panel under a title: texts, filled boxes, markers and canvases.
 *
 * @returns null where the browser refuses.
 */
export function panelPicture(panel: HTMLElement, title: string): Promise<Blob | null> {
  const ratio = Math.max(2, window.devicePixelRatio || 1);
  const frame = panel.getBoundingClientRect();
  const style = getComputedStyle(panel);
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(frame.width * ratio);
  canvas.height = Math.round((frame.height + HEAD) * ratio);
  const context = canvas.getContext("2d");
  if (!context) return Promise.resolve(null);
  context.scale(ratio, ratio);
  context.fillStyle = style.backgroundColor;
  context.fillRect(0, 0, frame.width, frame.height + HEAD);
  context.font = `500 14px ${style.fontFamily}`;
  context.fillStyle = style.color;
  context.textBaseline = "middle";
  context.fillText(title, 15, HEAD / 2 + 3);
  context.translate(-frame.left, HEAD - frame.top);
  context.beginPath();
  context.rect(frame.left, frame.top, frame.width, frame.height);
  context.clip();
  paint(panel, context);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

function paint(element: Element, context: CanvasRenderingContext2D): void {
  for (const child of element.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) paintText(child as Text, context);
    if (!(child instanceof Element)) continue;
    const style = getComputedStyle(child);
    if (style.visibility === "hidden" || style.display === "none" || child.matches(SKIPPED)) continue;
    const box = child.getBoundingClientRect();
    const clipped = child instanceof HTMLElement && style.overflowX !== "visible" && style.overflowX !== "";
    context.save();
    if (clipped) {
      context.beginPath();
      context.rect(box.left, box.top, box.width, box.height);
      context.clip();
    }
    if (child instanceof HTMLElement) paintBox(box, style, context);
    if (child instanceof HTMLCanvasElement) context.drawImage(child, box.left, box.top, box.width, box.height);
    else if (child instanceof SVGElement) paintMarker(child, box, context);
    else if (child instanceof HTMLSelectElement) paintChoice(child, box, style, context);
    else paint(child, context);
    context.restore();
  }
}

function paintBox(box: DOMRect, style: CSSStyleDeclaration, context: CanvasRenderingContext2D): void {
  if (style.backgroundColor !== "rgba(0, 0, 0, 0)") {
    context.fillStyle = style.backgroundColor;
    context.fillRect(box.left, box.top, box.width, box.height);
  }
  const width = Number.parseFloat(style.borderTopWidth);
  if (width > 0 && style.borderTopStyle !== "none") {
    context.fillStyle = style.borderTopColor;
    context.fillRect(box.left, box.top, box.width, width);
  }
  const side = Number.parseFloat(style.borderLeftWidth);
  if (side > 0 && style.borderLeftStyle !== "none") {
    context.fillStyle = style.borderLeftColor;
    context.fillRect(box.left, box.top, side, box.height);
  }
}

function setFont(style: CSSStyleDeclaration, context: CanvasRenderingContext2D): void {
  context.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  context.fillStyle = style.color;
  context.textBaseline = "middle";
  context.direction = style.direction as CanvasDirection;
}

/** Word by word, so that lines break where they do on the page. */
function paintText(node: Text, context: CanvasRenderingContext2D): void {
  const parent = node.parentElement;
  if (node.data.trim() === "" || !parent) return;
  const style = getComputedStyle(parent);
  setFont(style, context);
  const range = document.createRange();
  for (const word of node.data.matchAll(/\S+/g)) {
    range.setStart(node, word.index);
    range.setEnd(node, word.index + word[0].length);
    const box = range.getBoundingClientRect();
    if (box.width === 0) continue;
    const text = style.textTransform === "uppercase" ? word[0].toUpperCase() : word[0];
    context.fillText(text, style.direction === "rtl" ? box.right : box.left, box.top + box.height / 2);
  }
}

function paintChoice(
  select: HTMLSelectElement,
  box: DOMRect,
  style: CSSStyleDeclaration,
  context: CanvasRenderingContext2D,
) {
  setFont(style, context);
  context.fillText(select.selectedOptions[0]?.text ?? "", box.left + 2, box.top + box.height / 2);
}

/** Icons and markers are one path, circle or polygon each, in their colour. */
function paintMarker(svg: SVGElement, box: DOMRect, context: CanvasRenderingContext2D): void {
  const shape = svg.querySelector("path, circle, polygon");
  if (!(svg instanceof SVGSVGElement) || !shape) return;
  const view = svg.viewBox.baseVal;
  context.translate(box.left, box.top);
  context.scale(box.width / view.width, box.height / view.height);
  context.translate(-view.x, -view.y);
  const fill = shape.getAttribute("fill");
  context.fillStyle = !fill || fill === "currentColor" ? getComputedStyle(svg).color : fill;
  const radius = shape.getAttribute("r");
  const points = shape.getAttribute("points");
  const path = new Path2D(shape.getAttribute("d") ?? (points ? `M${points.replaceAll(" ", "L")}Z` : ""));
  if (radius) path.arc(0, 0, Number(radius), 0, 2 * Math.PI);
  context.fill(path);
}
