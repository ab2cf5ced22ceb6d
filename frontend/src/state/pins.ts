/** Pinned channels of the layer. */

import { pins, spoken, update } from "./store";

export const MOST_PINS = 6;

/** Pins a channel or takes it out; the oldest gives way to a seventh. */
export function togglePin(channel: number): void {
  const now = pins.peek();
  const pinned = now.includes(channel);
  const next = pinned ? now.filter((pin) => pin !== channel) : [...now, channel].slice(-MOST_PINS);
  const gone = now.find((pin) => !pinned && !next.includes(pin));
  update({ pins: next });
  spoken.value = `Channel ${channel} ${pinned ? "unpinned" : "pinned"}${gone === undefined ? "" : `, channel ${gone} unpinned (limit ${MOST_PINS})`}`;
}
