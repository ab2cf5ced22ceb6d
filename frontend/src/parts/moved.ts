/** Elements that follow the pointer, each moved without the page being laid out, painted or composed anew. */

const effects = new WeakMap<HTMLElement, KeyframeEffect>();

/**
 * Moves the element that it is given as a `ref`, to a whole pixel: text and lines stay sharp.
 *
 * By an animation that stands still: where a transform of the style's own changes, Chromium composes all layers anew.
 */
export const movedTo = (x: number, y: number) => (element: HTMLElement | null) => {
  if (!element) return;
  const place = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
  const keyframes = { transform: [place, place] };
  const known = effects.get(element);
  if (known) return known.setKeyframes(keyframes);
  const effect = new KeyframeEffect(element, keyframes, 1);
  new Animation(effect).pause();
  effects.set(element, effect);
};
