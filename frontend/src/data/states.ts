/** The states of a channel, in the order of their codes on the wire. */

export const NO_DATA = 0;
export const MOVING = 1;
export const REACTIVATED = 2;
export const QUIET = 3;
export const FROZEN = 4;
export const PRUNED = 5;
export const FOLLOWING = 6;
export const NONFINITE = 7;
export const STATES = 8;
export const STATE_BITS = 0x07;
export const VIOLATED = 0x80;

/** From the bottom of a strip to its top. */
export const STACK = [NONFINITE, MOVING, REACTIVATED, QUIET, FOLLOWING, FROZEN, PRUNED, NO_DATA] as const;
/** As the legend lists them. */
export const LEGEND = [MOVING, QUIET, FROZEN, PRUNED, REACTIVATED] as const;
/** All that a channel with a record may be in. */
export const LISTED = [...LEGEND, FOLLOWING, NONFINITE] as const;

export const STATE_NAMES = [
  "no data",
  "moving",
  "reactivated",
  "quiet",
  "frozen",
  "pruned",
  "following",
  "nonfinite",
] as const;
export const STATE_TITLES = [
  "No data",
  "Moving",
  "Reactivated",
  "Quiet",
  "Frozen",
  "Pruned",
  "Following",
  "Nonfinite",
] as const;
export const STATE_HINTS = [
  "not recorded",
  "weights still change; tint = Δ",
  "trains again after being frozen, pruned or nonfinite",
  "moves less than the threshold per step",
  "not trainable (mask or trainable=False)",
  "held at zero, or became zero",
  "moved on purpose, by no optimizer",
  "has NaN or infinity",
] as const;

export const stateCode = (name: string): number => {
  const code = (STATE_NAMES as readonly string[]).indexOf(name.replace("_", " "));
  return code < 0 ? NO_DATA : code;
};
