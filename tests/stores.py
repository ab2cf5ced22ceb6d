"""Stores on loopback, slow and failing as a test wants it: the server, and one that speaks S3."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest import mock

import pytest
from werkzeug.serving import WSGIRequestHandler, make_server

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

moto = pytest.importorskip("moto.server", reason="moto isn't installed: it belongs to `dev`")

BUCKET = "bucket"


class Request(NamedTuple):
    """One that came, with the bytes of its body."""

    method: str
    path: str
    size: int


Fault = int | float | str | None
"""A status, seconds that it takes, "reset", or none."""


class Handler(WSGIRequestHandler):
    """Keeps connections, and prints nothing."""

    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:
        """Nothing."""


class Server:
    """The server: `requests` that came, and `fault`, which is asked before each that writes."""

    def __init__(self, app: WSGIApplication, handler: type[Handler] = Handler) -> None:
        self.requests: list[Request] = []
        self.puts: list[Request] = []
        self.fault: Callable[[int], Fault] = lambda number: None
        self._app = app
        self._server = make_server(
            "127.0.0.1", 0, self._answer, threaded=True, request_handler=handler
        )
        self._server.daemon_threads = True  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def writes(self, environ: dict[str, Any]) -> bool:
        """Whether a request writes an object."""
        return bool(environ["REQUEST_METHOD"] == "PUT")

    def clear(self) -> None:
        """Forgets what came."""
        self.requests.clear()
        self.puts.clear()

    def close(self) -> None:
        """Ends it."""
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        size = int(environ.get("CONTENT_LENGTH") or 0)
        request = Request(environ["REQUEST_METHOD"], environ["PATH_INFO"], size)
        self.requests.append(request)
        fault = None
        if self.writes(environ):
            self.puts.append(request)
            fault = self.fault(len(self.puts))
        if isinstance(fault, float):
            time.sleep(fault)
        elif fault == "reset":
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            start("500 Reset", [])
            return [b""]
        elif isinstance(fault, int):
            environ["wsgi.input"].read(size)
            start(f"{fault} Fault", [("Content-Length", "0")])
            return [b""]
        answer: Iterable[bytes] = self._app(environ, start)
        return answer


class S3(Server):
    """What moto answers; `environ` leads drivers to it."""

    def __init__(self) -> None:
        super().__init__(moto.DomainDispatcherApplication(moto.create_backend_app))
        self.environ = {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
        }


@contextmanager
def s3() -> Iterator[S3]:
    """A store with a bucket; processes that are started meanwhile know it, too."""
    import boto3
    import s3fs

    server = S3()
    with mock.patch.dict(os.environ, server.environ):
        boto3.client("s3").create_bucket(Bucket=BUCKET)
        s3fs.S3FileSystem.clear_instance_cache()
        server.clear()
        yield server
    server.close()
