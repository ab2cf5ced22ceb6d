"""HTTP around the routes: GET only, ETag and 304, gzip, one shape of errors.

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
from tb_pastnet.serve.http.answers import BINARY, JSON, Answer, NotModified
from tb_pastnet.serve.http.failures import (
    Failure,
    from_tensorboard,
    internal,
    not_allowed,
    not_listed,
    run_deleted,
)

WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

Handler = Callable[[wrappers.Request], "Answer | NotModified"]

logger = logging.getLogger(__name__)


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
            raise not_allowed(request.method)
        return _success(request, handler(request))
    except Failure as failure:
        return _failure(request, failure)
    except RunDeleted as deleted:
        return _failure(request, run_deleted(str(deleted)))
    except NotListed:
        logger.warning("TensorBoard could not list its runs", exc_info=True)
        return _failure(request, not_listed())
    except errors.PublicError as error:
        return _failure(request, from_tensorboard(error.http_code))
    except Exception as error:  # TensorBoard must not see it
        logger.exception("A route of the PastNet tab failed")
        return _failure(request, internal(error))


def _success(request: wrappers.Request, answer: Answer | NotModified) -> Any:
    asked = [part.strip() for part in request.headers.get("If-None-Match", "").split(",")]
    if isinstance(answer, NotModified) and answer.tag not in asked:
        answer = answer.make()
    headers = [("ETag", answer.tag), ("Vary", "Accept-Encoding")]
    if isinstance(answer, NotModified) or answer.tag in asked:
        return http_util.Respond(request, b"", BINARY, code=304, headers=headers)
    headers += answer.headers
    return http_util.Respond(
        request,
        answer.body,
        answer.content_type,
        content_encoding="gzip" if answer.packed else None,
        headers=headers,
    )


def _failure(request: wrappers.Request, failure: Failure) -> Any:
    headers = [("Allow", failure.allow)] if failure.allow else []
    return http_util.Respond(request, failure.body(), JSON, code=failure.status, headers=headers)
