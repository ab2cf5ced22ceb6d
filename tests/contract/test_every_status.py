"""Every route × every status × both loaders: what TensorBoard's validator says, and one shape of errors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import TestResponse

from tb_pastnet.serve.routes import ROUTES
from tests import described
from tests.described import DOCUMENT
from tests.tensorboards import PREFIX, Board, board, strict_json

pytestmark = pytest.mark.promise("every_status")

WARNING = "warning will become an error"
GOOD: dict[str, Any] = {
    "run": "dense", "other": "ticket", "layer": "conv1", "channel": "1",
}  # fmt: skip
PAGE = "/index.js"


def good(route: str) -> dict[str, Any]:
    """A query that a route answers."""
    if route == PAGE:
        return {}
    needed = [one["name"] for one in described.parameters(route).values() if one.get("required")]
    return {name: ["dense", "ticket"] if route == "/overlap" else GOOD[name] for name in needed}


def answers(here: Board, route: str) -> Iterator[TestResponse]:
    """The answers 200, 304, 400, 404 and 405 of a route, as far as it has them."""
    query = good(route)
    first = here.get(route, **query)
    yield first
    yield here.get(route, headers={"If-None-Match": first.headers["ETag"]}, **query)
    if query:
        yield here.get(route)
        yield here.get(route, **{name: ["x", "y"] for name in query})
    for method in ("HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        yield here.client.open(PREFIX + route, method=method)


def test_no_answer_is_warned_of(
    here: Board, caplog: pytest.LogCaptureFixture, monkeypatch: Any, figure: Callable[..., None]
) -> None:
    routes = [*ROUTES, PAGE]
    with caplog.at_level(logging.WARNING, logger="tensorboard"):
        found = {route: list(answers(here, route)) for route in routes}
        found["/nothing"] = [here.get("/nothing")]
        monkeypatch.setattr("tb_pastnet.reader.store.Store.catalog", None)
        for route in ROUTES:
            found[route].append(here.get(route, **good(route)))
    assert WARNING not in caplog.text
    for route, some in found.items():
        expected = [200, 304, *([400, 404] if good_query(route) else []), *[405] * 6]
        expected = [404] if route == "/nothing" else expected + [500] * (route in ROUTES)
        assert [one.status_code for one in some] == expected, route
        for one in some:
            assert not [name for name, _ in one.headers if name.startswith("Access-Control")]
            if one.status_code >= 400 and one.request.method != "HEAD":
                told = strict_json(one.get_data())
                assert not described.faults(told, DOCUMENT["components"]["schemas"]["Error"])
    every = [one for some in found.values() for one in some]
    kinds = sorted({one.status_code for one in every})
    figure(f"{len(every)} answers of {len(routes)} addresses ({kinds}): 0 validator warnings")


def good_query(route: str) -> bool:
    return route not in ("/nothing", PAGE) and bool(good(route))


def test_the_validator_does_warn(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As of an answer whose type isn't told: what the tests look for is what it says."""
    from tensorboard.plugins import base_plugin
    from werkzeug import wrappers

    class Careless(base_plugin.TBPlugin):
        plugin_name = "careless"

        def get_plugin_apps(self) -> dict[str, Any]:
            return {"/x": lambda environ, start: wrappers.Response(b"")(environ, _bare(start))}

        def is_active(self) -> bool:
            return False

    def _bare(start: Any) -> Any:
        return lambda status, headers: start(status, [])

    loader = base_plugin.BasicLoader(Careless)
    with board(tmp_path, "slow", loaders=[loader]) as here:
        here.client.get("/data/plugin/careless/x")
    assert WARNING in caplog.text
