/** Why there is no answer. */

/** "unreachable": the server gave none; "unknown": it doesn't have what was asked for, such as a run that is deleted. */
type Loss = "unreachable" | "unknown" | "failed";

export class LoadError extends Error {
  constructor(
    message: string,
    readonly loss: Loss = "failed",
  ) {
    super(message);
  }
}

export const unreadable = (why: string): LoadError =>
  new LoadError(`Could not read the answer of TensorBoard's server: ${why}. Reload the page if this persists.`);

/** Any error of a request; what a parser or the connection says isn't for users. */
export const asLoadError = (cause: unknown): LoadError =>
  cause instanceof LoadError ? cause : unreadable("it is cut off or damaged");
