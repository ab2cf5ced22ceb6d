"""HTTP around the routes: GET only, ETag and 304, gzip, one JSON shape of failures.

Every answer goes through TensorBoard's `http_util.Respond`, which adds the headers that
TensorBoard's validator requires. No error of a route reaches TensorBoard.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from tensorboard import errors
from tensorboard.backend import http_util
from werkzeug import wrappers

from tb_pastnet.reader.series_source import NotListed, RunDeleted
from tb_pastnet.serve.http.answers import BINARY, JSON, SCHEMA, Answer, NotModified, dumps

WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

Handler = Callable[[wrappers.Request], "Answer | NotModified"]

_LONGEST = 80
_CODES = {400: "bad_request", 401: "unauthenticated", 403: "forbidden", 404: "not_found"}

logger = logging.getLogger(__name__)


UNREADABLE = "unreadable"
"""The code of a failure about a run that can't be read; others can."""


class Failure(Exception):
    """An answer other than 200: a code that programs can rely on, and a message for people.

    The message begins with `Could not`, and is free of absolute paths.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def bad_request(message: str) -> Failure:
    """A parameter that can't be used."""
    return Failure(400, "bad_request", message)


def not_found(message: str) -> Failure:
    """A run, a layer, a channel or a route that isn't there."""
    return Failure(404, "not_found", message)


def shown(name: str) -> str:
    """A name from a request, quoted and cut to a readable length."""
    return repr(name if len(name) <= _LONGEST else name[:_LONGEST] + "…")


def application(handler: Handler) -> WsgiApp:
    """Makes a WSGI application, which raises only what `start_response` raises."""

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        response = _respond(wrappers.Request(environ), handler)

        def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            # werkzeug removes the content type of a 304, TensorBoard's validator requires one.
            if status.startswith("304"):
                headers = [*headers, ("Content-Type", JSON)]
            return start_response(status, headers, *rest)

        return response(environ, start)  # type: ignore[no-any-return]

    return app


def _respond(request: wrappers.Request, handler: Handler) -> Any:
    try:
        if request.method != "GET":
            raise Failure(
                405,
                "method_not_allowed",
                f"Could not answer: expected method GET, got {shown(request.method)}. Every route "
                "only reads.",
            )
        return _success(request, handler(request))
    except Exception as error:  # TensorBoard must not see it
        failure = _failure(error)
    body = {"schema": SCHEMA, "error": {"code": failure.code, "message": failure.message}}
    headers = [("Allow", "GET")] if failure.status == 405 else []
    return http_util.Respond(request, dumps(body), JSON, code=failure.status, headers=headers)


def _failure(error: Exception) -> Failure:
    """How the client learns of an error. Texts that may contain paths are only in the log."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, RunDeleted):
        return not_found(
            f"Could not read the run {shown(str(error))}: expected its listed data, got nothing. "
            "It was deleted or replaced in the meantime: reload."
        )
    if isinstance(error, NotListed):
        logger.warning("TensorBoard could not list its runs", exc_info=error)
        return Failure(
            503,
            "unavailable",
            "Could not list the runs: expected a list from TensorBoard, got an error of its "
            "loader, which is still running. Try again; TensorBoard's log has details.",
        )
    if isinstance(error, errors.PublicError):
        return Failure(
            error.http_code,
            _CODES.get(error.http_code, "internal"),
            f"Could not read the log: expected data from TensorBoard, got status "
            f"{error.http_code}. Check the address of this page and the log directory that "
            "TensorBoard was started with.",
        )
    logger.error("A route of the PastNet tab failed", exc_info=error)
    return Failure(
        500,
        "internal",
        f"Could not answer: expected no error, got {type(error).__name__}. "
        "TensorBoard's log has details.",
    )


def _success(request: wrappers.Request, answer: Answer | NotModified) -> Any:
    asked = request.if_none_match
    if isinstance(answer, NotModified) and not asked.contains_raw(answer.tag):
        answer = answer.make()
    headers = [("ETag", answer.tag), ("Vary", "Accept-Encoding")]
    if isinstance(answer, NotModified) or asked.contains_raw(answer.tag):
        return http_util.Respond(request, b"", BINARY, code=304, headers=headers)
    headers += answer.headers
    return http_util.Respond(
        request,
        answer.body,
        answer.content_type,
        content_encoding="gzip" if answer.packed else None,
        headers=headers,
    )
