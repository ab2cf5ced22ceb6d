"""HTTP around the routes: GET only, ETag and 304, gzip, one shape of errors.

Every answer goes through TensorBoard's `http_util.Respond`, which adds the headers that
TensorBoard's validator asks for. Nothing that a route raises reaches TensorBoard.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tensorboard import errors
from tensorboard.backend import http_util
from werkzeug import wrappers

from tb_pastnet.reader.deleted_runs import Vanished
from tb_pastnet.serve.http.failures import (
    Failure,
    from_tensorboard,
    internal,
    not_allowed,
    vanished,
)
from tb_pastnet.serve.http.packing import gzipped

JSON = "application/json"
BINARY = "application/octet-stream"
CSV = "text/csv"

WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

Route = Callable[[wrappers.Request], "Answer | Known"]

_WORTH_PACKING = 1024
_SAVES = 0.9

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answer:
    """What a route answers.

    Attributes:
        body: the bytes, gzipped where `packed`.
        content_type: set by hand; never guessed from a name.
        tag: the entity tag, from the content.
        packed: whether the body is gzipped.
        headers: further headers.
    """

    body: bytes
    content_type: str
    tag: str
    packed: bool = False
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Known:
    """An answer that was given before and may be gone since: a 304 needs its name alone.

    Attributes:
        tag: its entity tag.
        make: gives it.
    """

    tag: str
    make: Callable[[], Answer]


def answer(body: bytes, content_type: str, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
    """Makes an answer: names its content and packs it where that pays.

    Text is left to TensorBoard, which packs it for the clients that want it.

    Args:
        body: the content.
        content_type: its media type.
        headers: further headers.
    """
    packed = b""
    if content_type == BINARY and len(body) >= _WORTH_PACKING:
        packed = gzipped(body)
    if len(packed) >= _SAVES * len(body):
        packed = b""
    # The name must be weak: one tag stands for the packed and for the plain bytes.
    tag = f'W/"{hashlib.blake2b(packed or body, digest_size=12).hexdigest()}"'
    return Answer(packed or body, content_type, tag, packed=bool(packed), headers=headers)


def application(route: Route) -> WsgiApp:
    """Makes a WSGI application of a route.

    Args:
        route: takes the request and gives its answer, or raises.

    Returns:
        The application. It raises nothing but what the server's own `start_response` raises.
    """

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        response = _respond(wrappers.Request(environ), route)

        def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            # werkzeug takes the content type off a 304, TensorBoard's validator asks for one.
            if status.startswith("304"):
                headers = [*headers, ("Content-Type", JSON)]
            return start_response(status, headers, *rest)

        return response(environ, start)  # type: ignore[no-any-return]

    return app


def _respond(request: wrappers.Request, route: Route) -> Any:
    try:
        if request.method != "GET":
            raise not_allowed(request.method)
        return _success(request, route(request))
    except Failure as failure:
        return _failure(request, failure)
    except Vanished as gone:
        return _failure(request, vanished(str(gone)))
    except errors.PublicError as error:
        return _failure(request, from_tensorboard(error.http_code))
    except Exception as error:  # TensorBoard must not see it
        logger.exception("A route of the PastNet tab failed")
        return _failure(request, internal(error))


def _success(request: wrappers.Request, found: Answer | Known) -> Any:
    asked = [part.strip() for part in request.headers.get("If-None-Match", "").split(",")]
    if isinstance(found, Known) and found.tag not in asked:
        found = found.make()
    headers = [("ETag", found.tag), ("Vary", "Accept-Encoding")]
    if isinstance(found, Known) or found.tag in asked:
        return http_util.Respond(request, b"", BINARY, code=304, headers=headers)
    headers += found.headers
    return http_util.Respond(
        request,
        found.body,
        found.content_type,
        content_encoding="gzip" if found.packed else None,
        headers=headers,
    )


def _failure(request: wrappers.Request, failure: Failure) -> Any:
    headers = [("Allow", failure.allow)] if failure.allow else []
    return http_util.Respond(request, failure.body(), JSON, code=failure.status, headers=headers)
