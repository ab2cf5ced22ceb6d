"""A reverse proxy as people put it in front of TensorBoard: everything below one path goes on to it."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

ENDS_HERE = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}
"""Headers that concern one connection and aren't handed on."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, target: str, path: str, strips: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target = urlsplit(target).netloc
        self.path = path
        self.strips = strips

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that asks no longer is no error."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        if not self.path.startswith(f"{self.server.path}/"):
            self.send_error(404)
            return
        path = self.path.removeprefix(self.server.path) if self.server.strips else self.path
        behind = http.client.HTTPConnection(self.server.target)
        with contextlib.closing(behind):
            given = {k: v for k, v in self.headers.items() if k.lower() not in ENDS_HERE}
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            behind.request(self.command, path, body=sent, headers=given)
            answer = behind.getresponse()
            body = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ENDS_HERE | {"server", "date"}:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:  # as TensorBoard's own tabs ask for runs
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@contextlib.contextmanager
def proxy(target: str, path: str, *, strips: bool) -> Iterator[str]:
    """Hands on what is asked for below a path, and answers 404 to all else.

    Args:
        target: the server behind it.
        path: such as /tools/board.
        strips: whether it takes the path off, so that the server knows nothing of it.

    Yields:
        The address of the server as seen from outside.
    """
    server = _Server(target, path, strips)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}{path}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
