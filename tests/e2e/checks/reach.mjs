// Which buttons and fields of a view can't be clicked, and which lie over words, window by window.
import { atWidths } from "../visit.mjs";

/** In the page: what another element lies over, or the window's edge cuts off; words under a button; how much was looked at. */
function unreachable() {
  const parents = (element) => (element ? [element, ...parents(element.parentElement)] : []);
  const inside = ({ left, right, top, bottom }, { x, y }) => x > left && x < right && y > top && y < bottom;
  const style = (element, property) => getComputedStyle(element)[property];
  /** Scrolled out of a box, or below the part of it that stays. */
  const scrolled = (element, over, place) =>
    parents(element).some((one) => style(one, "overflow") !== "visible" && !inside(one.getBoundingClientRect(), place)) ||
    parents(over).some((one) => style(one, "position") === "sticky" && !one.contains(element));
  const shown = [...document.querySelectorAll("button, input, select")].filter((element) =>
    element.checkVisibility({ opacityProperty: true }),
  );
  const lost = shown.filter((element) => {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    const place = { x: (left + right) / 2, y: (top + bottom) / 2 };
    const over = document.elementFromPoint(place.x, place.y);
    return !element.contains(over) && !over?.contains(element) && !scrolled(element, over, place);
  });
  const bar = document.querySelector(".toolbar");
  const cut = [...bar.children].filter((part) => part.getBoundingClientRect().right > innerWidth);
  const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const covered = [];
  while (words.nextNode()) {
    const word = words.currentNode;
    const element = word.parentElement;
    const range = document.createRange();
    range.selectNodeContents(word);
    const under = [...range.getClientRects()].flatMap(({ left, right, top, bottom }) =>
      [left + 1, (left + right) / 2, right - 1].map((x) => ({ x, y: (top + bottom) / 2 })),
    );
    const over = under.some((place) => {
      const button = document.elementFromPoint(place.x, place.y)?.closest("button");
      return button && !button.contains(word) && !scrolled(element, button, place);
    });
    if (over && element.checkVisibility({ opacityProperty: true })) covered.push(word.data);
  }
  const name = (element) => element.ariaLabel || element.textContent.trim() || element.id;
  return { lost: [...lost, ...cut].map(name), covered, looked: shown.length };
}

export const reach = (visit, options) => atWidths(visit, options, unreachable);
