"""Failures of routes, in one JSON shape."""

from __future__ import annotations

from tb_pastnet.serve.http.answers import SCHEMA, dumps

_LONGEST = 80


class Failure(Exception):
    """An answer other than 200."""

    def __init__(self, status: int, code: str, message: str, allow: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code  # a word that programs can rely on
        self.message = message  # `Could not ...`, for people; free of absolute paths
        self.allow = allow  # the methods that are allowed, where the status is 405

    def body(self) -> bytes:
        """The JSON that goes out."""
        return dumps({"schema": SCHEMA, "error": {"code": self.code, "message": self.message}})


def bad_request(message: str) -> Failure:
    """A parameter that can't be used."""
    return Failure(400, "bad_request", message)


def not_found(message: str) -> Failure:
    """A run, a layer, a channel or a route that isn't there."""
    return Failure(404, "not_found", message)


def run_deleted(run: str) -> Failure:
    """A run that disappeared while it was read."""
    return not_found(
        f"Could not read the run {shown(run)}: expected its listed data, got "
        "nothing. It was deleted or replaced in the meantime: reload."
    )


def not_listed() -> Failure:
    """TensorBoard fails to list its runs, and no earlier list is known."""
    return Failure(
        503,
        "unavailable",
        "Could not list the runs: expected a list from TensorBoard, got an error of its loader, "
        "which is still running. Try again; TensorBoard's log has details.",
    )


def not_allowed(method: str) -> Failure:
    """Any method but GET: no route changes anything."""
    return Failure(
        405,
        "method_not_allowed",
        f"Could not answer: expected method GET, got {shown(method)}. Every route only reads.",
        allow="GET",
    )


def internal(error: BaseException) -> Failure:
    """Our own error. Its text, which may contain paths, is in TensorBoard's log."""
    return Failure(
        500,
        "internal",
        f"Could not answer: expected no error, got {type(error).__name__}. "
        "TensorBoard's log has details.",
    )


def from_tensorboard(status: int) -> Failure:
    """An error of TensorBoard's data provider, whose text may contain paths."""
    codes = {400: "bad_request", 401: "unauthenticated", 403: "forbidden", 404: "not_found"}
    return Failure(
        status,
        codes.get(status, "internal"),
        f"Could not read the log: expected data from TensorBoard, got status {status}. "
        "Check the address of this page and the log directory that TensorBoard was started with.",
    )


def shown(name: str) -> str:
    """A name from a request, quoted and cut to a readable length."""
    return repr(name if len(name) <= _LONGEST else name[:_LONGEST] + "…")
