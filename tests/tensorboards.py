"""TensorBoard as it runs for users: default flags, either loader, all its standard tabs."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tensorboard import default, program
from tensorboard.backend import application
from tensorboard.data import server_ingester
from tensorboard.util import grpc_util
from werkzeug.test import Client, TestResponse

from tb_pastnet.serve.loader import PastNetLoader
from tests.layers import arrays_of

LOADERS = ("slow", "fast")
PREFIX = "/data/plugin/pastnet"


@dataclass
class Board:
    """A running TensorBoard without a socket."""

    app: Any
    provider: Any

    @property
    def client(self) -> Client:
        return Client(self.app)

    def get(self, route: str, headers: dict[str, str] | None = None, **query: Any) -> TestResponse:
        return self.client.get(PREFIX + route, query_string=query, headers=headers)

    def json(self, route: str, **query: Any) -> Any:
        response = self.get(route, **query)
        assert response.status_code == 200, response.get_data(as_text=True)
        return strict_json(response.get_data())

    def arrays(self, route: str, **query: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        response = self.get(route, **query)
        assert response.status_code == 200, response.get_data(as_text=True)
        return arrays_of(response.get_data())


def strict_json(data: bytes) -> Any:
    """Parses JSON as browsers do: without NaN and Infinity."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(data, parse_constant=refuse)


def flags_for(logdir: Path | str, *arguments: str, loaders: Any = None) -> Any:
    """TensorBoard's own flags, parsed and fixed by its own code."""
    plugins = [PastNetLoader()] if loaders is None else loaders
    board = program.TensorBoard(plugins=[*default.get_static_plugins(), *plugins])
    board.configure(argv=["tensorboard", "--logdir", str(logdir), *arguments])
    return board.flags


def _slow(flags: Any) -> Any:
    from tensorboard.backend.event_processing.data_ingester import LocalDataIngester

    flags.reload_task = "blocking"
    ingester = LocalDataIngester(flags)
    ingester.start()
    return ingester


@cache
def _loopback_down() -> str:
    """Why no process of this machine can connect to another one of it; "" where one can."""
    try:
        with socket.create_server(("localhost", 0)) as server:
            socket.create_connection(server.getsockname()).close()
    except OSError as error:
        return str(error)
    return ""


def _fast(flags: Any) -> Any:
    """Starts the data server and waits until it has read the whole log once."""
    if why := _loopback_down():
        pytest.skip(f"the fast loader needs the loopback: {why}")
    ingester = server_ingester.SubprocessServerDataIngester(
        server_ingester.get_server_binary(),
        flags.logdir,
        reload_interval=0,
        channel_creds_type=grpc_util.ChannelCredsType.LOCAL,
        samples_per_plugin=flags.samples_per_plugin,
        extra_flags=["--verbose"],
    )
    stderr = os.dup(2)
    out, into = os.pipe()
    os.dup2(into, 2)
    try:
        with warnings.catch_warnings():
            # TensorBoard lets go of the process and of a directory without a word.
            warnings.simplefilter("ignore", ResourceWarning)
            ingester.start()
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(into)
    said = b""
    while b"Finished load cycle" not in said:
        more = os.read(out, 1 << 16)
        assert more, f"the data server ended: {said!r}"
        said += more
    # The pipe stays open: the server would die of writing into a closed one.
    ingester.said = out
    return ingester


@contextlib.contextmanager
def board(logdir: Path | str, loader: str, *arguments: str, loaders: Any = None) -> Iterator[Board]:
    """Starts TensorBoard on a log directory, reads it once, and stops it."""
    flags = flags_for(logdir, "--reload_interval", "0", *arguments, loaders=loaders)
    plugins = [PastNetLoader()] if loaders is None else loaders
    ingester = _slow(flags) if loader == "slow" else _fast(flags)
    try:
        app = application.TensorBoardWSGIApp(
            flags,
            [*default.get_static_plugins(), *plugins],
            ingester.data_provider,
            None,
            getattr(ingester, "deprecated_multiplexer", None),
        )
        yield Board(app, ingester.data_provider)
    finally:
        if loader == "fast":
            ingester._stdin_handle.close()
            os.close(ingester.said)
