"""What the first answers about a log cost, in this process and without a socket."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.plugins.base_plugin import TBContext
from werkzeug.test import Client

from benchmarks._logs import Size, write_logs
from benchmarks._pairs import seconds
from tb_pastnet.serve.plugin import PastNetPlugin

ROUTES = "/index", "/overview", "/layer"
TIMES = 5


def asked(size: Size) -> dict[str, float]:
    """Writes a log, loads it, and asks for it: the median of some fresh plugins.

    Args:
        size: of the log.

    Returns:
        Milliseconds of the index of all runs, the overview of one, and its widest layer.
    """
    with tempfile.TemporaryDirectory() as folder:
        write_logs(Path(folder), size, variants=1)
        multiplexer = EventMultiplexer(tensor_size_guidance={"pastnet": 0})
        multiplexer.AddRunsFromDirectory(folder)
        multiplexer.Reload()
        provider: Any = MultiplexerDataProvider(multiplexer, folder)
        found = [_first(provider) for _ in range(TIMES)]
    return dict(zip(ROUTES, (1e3 * np.median(found, axis=0)).tolist(), strict=True))


def _first(provider: Any) -> list[float]:
    """Seconds of each route, asked of a plugin that knows nothing yet."""
    apps = PastNetPlugin(TBContext(data_provider=provider)).get_plugin_apps()
    clients = {route: Client(app) for route, app in apps.items()}

    def ask(route: str, **query: str) -> Any:
        answer = clients[route].get(route, query_string=query)
        if answer.status_code != 200:
            raise RuntimeError(f"Could not ask for {route}: got {answer.status}.")
        return answer

    first = seconds(lambda: ask("/index"))
    index = json.loads(ask("/index").get_data())
    run = index["runs"][0]
    widest = max(index["networks"][run["network"]]["layers"], key=lambda one: one["channels"])
    return [
        first,
        seconds(lambda: ask("/overview", run=run["name"], cols="128")),
        seconds(lambda: ask("/layer", run=run["name"], layer=widest["id"])),
    ]
