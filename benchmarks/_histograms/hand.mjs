// The hand of a user: each thing that it does is one action, and is written down.

/** Says why a tab can't answer a question. */
export class No extends Error {}

export class Hand {
  /** `settled` waits until the page has drawn what an action asked for. */
  constructor(page, settled) {
    this.page = page;
    this.settled = settled;
    this.actions = [];
  }

  async #did(what) {
    this.actions.push(what);
    await this.settled();
  }

  /** At `at`, a point of the screen. */
  async click(at, what) {
    await this.page.mouse.move(at.x, at.y);
    await this.page.mouse.click(at.x, at.y);
    await this.#did(`click ${what}`);
  }

  /** Two moves, as a page may ask for the direction; they are one to the user. */
  async point(at, what) {
    await this.page.mouse.move(at.x - 1, at.y);
    await this.page.mouse.move(at.x, at.y);
    await this.#did(`point at ${what}`);
  }

  async press(key) {
    await this.page.keyboard.press(key);
    await this.#did(`press ${key}`);
  }

  /** A word into a field; the click into it belongs to it. */
  async type(field, word, what) {
    await field.click();
    await this.page.keyboard.type(word);
    await this.#did(`type "${word}" into ${what}`);
  }

  async choose(select, label, what) {
    await select.selectOption({ label });
    await this.#did(`choose "${label}" in ${what}`);
  }

  /** Brings something onto the screen: no action where it is there already, else one. */
  async see(element, what) {
    const box = await element.boundingBox();
    const { height } = this.page.viewportSize();
    const hidden = await element.evaluate((node) => {
      const { top, bottom } = node.getBoundingClientRect();
      const scroller = node.closest(".table-scroll, .side-scroll, .inspector");
      const room = scroller?.getBoundingClientRect() ?? { top: 0, bottom: innerHeight };
      return bottom > room.bottom + 1 || top < room.top - 1;
    });
    if (!hidden && box && box.y >= 0 && box.y + box.height <= height + 1) return;
    await element.scrollIntoViewIfNeeded();
    await this.#did(`scroll to ${what}`);
  }
}

/** The middle of an element on the screen. */
export async function middle(element) {
  const { x, y, width, height } = await element.boundingBox();
  return { x: x + width / 2, y: y + height / 2 };
}
