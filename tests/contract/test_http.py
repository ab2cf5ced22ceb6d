"""Every route through TensorBoard's own application: statuses and headers."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tensorboard.errors import NotFoundError, PermissionDeniedError, PublicError
from werkzeug.test import TestResponse

from tb_pastnet.serve import plugin, routes
from tb_pastnet.serve.routes import ROUTES
from tests import event_files as files
from tests import probed
from tests.containers import unpack
from tests.tensorboards import PREFIX, Board, board, strict_json

GOOD = {
    "/index": {},
    "/overview": {"run": "a"},
    "/lanes": {"run": "a"},
    "/scalars": {"run": "a"},
    "/records": {"run": "a"},
    "/layer": {"run": "a", "layer": "conv1"},
    "/channel": {"run": "a", "layer": "conv1", "channel": "1"},
    "/violations": {"run": "a"},
    "/findings": {"run": ["a", "b"]},
    "/function": {"run": "a"},
    "/overlap": {"run": ["a", "b"]},
    "/overlap_layers": {"run": "a", "other": "b"},
    "/export.csv": {"run": "a"},
}
TYPES = {
    "/index": "application/json",
    "/overview": "application/octet-stream",
    "/lanes": "application/octet-stream",
    "/scalars": "application/octet-stream",
    "/records": "application/octet-stream",
    "/layer": "application/octet-stream",
    "/channel": "application/json",
    "/violations": "application/json",
    "/findings": "application/json",
    "/function": "application/octet-stream",
    "/overlap": "application/json",
    "/overlap_layers": "application/octet-stream",
    "/export.csv": "text/csv",
    "/index.js": "text/javascript",
}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    logdir = tmp_path_factory.mktemp("log")
    probed.written(files.write_run(logdir), range(1, 41))
    files.write_run(logdir, "b", lineage=5)
    with board(logdir, "slow") as found:
        yield found


@pytest.fixture(autouse=True)
def _no_word_from_the_validator(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.WARNING, logger="tensorboard"):
        yield
    assert "warning will become an error" not in caplog.text


def failed(response: TestResponse, status: int, code: str) -> str:
    """Checks the one shape of errors and returns the message."""
    assert response.status_code == status
    assert response.mimetype == "application/json"
    body = strict_json(response.get_data())
    assert body.keys() == {"schema", "error"}
    assert body["error"].keys() == {"code", "message"}
    assert body["error"]["code"] == code
    assert body["error"]["message"].startswith("Could not ")
    return str(body["error"]["message"])


def test_the_routes_are_those_that_are_documented() -> None:
    assert set(GOOD) == set(ROUTES)


@pytest.mark.promise("every_status")
@pytest.mark.parametrize("route", TYPES)
def test_200_and_then_304(here: Board, route: str) -> None:
    first = here.get(route, **GOOD.get(route, {}))
    assert first.status_code == 200
    assert first.mimetype == TYPES[route]
    assert first.headers["X-Content-Type-Options"] == "nosniff"
    assert "no-cache" in first.headers["Cache-Control"]
    assert not [name for name, _ in first.headers if name.startswith("Access-Control")]
    tag = first.headers["ETag"]
    again = here.get(route, headers={"If-None-Match": tag}, **GOOD.get(route, {}))
    assert (again.status_code, again.get_data(), again.headers["ETag"]) == (304, b"", tag)
    packed = here.get(route, headers={"Accept-Encoding": "gzip"}, **GOOD.get(route, {}))
    assert packed.headers["ETag"] == tag


@pytest.mark.promise("every_status")
@pytest.mark.parametrize("route", [*TYPES, "/nothing"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_405_for_everything_but_get(here: Board, route: str, method: str) -> None:
    response = here.client.open(PREFIX + route, method=method)
    assert response.headers["Allow"] == "GET"
    failed(response, 405, "method_not_allowed")


@pytest.mark.promise("every_status")
@pytest.mark.parametrize("route", [*TYPES, "/nothing"])
def test_405_without_a_body_for_head(here: Board, route: str) -> None:
    response = here.client.head(PREFIX + route)
    assert (response.status_code, response.headers["Allow"]) == (405, "GET")
    assert response.get_data() == b""


@pytest.mark.promise("every_status")
@pytest.mark.parametrize(
    "path",
    ["/nothing", "/static/index.js", "/index.js/x", "/..%2f..%2fetc/passwd", "/%00", "/loader.py"],
)
def test_404_for_every_other_path(here: Board, path: str) -> None:
    failed(here.client.get(PREFIX + path), 404, "not_found")


@pytest.mark.promise("every_status")
@pytest.mark.parametrize(
    ("route", "query", "status", "text"),
    [
        ("/overview", {}, 400, "expected the parameter 'run'"),
        ("/overview", {"run": "c"}, 404, "got 'c'"),
        ("/overview", {"run": "a", "cols": "0"}, 400, "from 1 to 4096"),
        ("/overview", {"run": "a", "cols": "x"}, 400, "from 1 to 4096"),
        ("/overview", {"run": "a", "first": "1.5"}, 400, "Could not use first: expected a whole"),
        ("/overview", {"run": "a", "first": "9", "last": "8"}, 400, "from first=9 on, got 8"),
        ("/overview", {"run": "a", "th": "nan"}, 400, "expected th to be a number"),
        ("/records", {}, 400, "expected the parameter 'run'"),
        ("/records", {"run": "c"}, 404, "got 'c'"),
        ("/records", {"run": "a", "at": "1.5"}, 400, "Could not use at: expected a whole"),
        ("/records", {"run": "a", "count": "0"}, 400, "from 1 to 64"),
        ("/records", {"run": "a", "count": "65"}, 400, "from 1 to 64"),
        ("/records", {"run": "a", "th": "-1"}, 400, "expected th to be a number"),
        ("/layer", {"run": "a"}, 400, "expected the parameter 'layer'"),
        ("/layer", {"run": "a", "layer": "x"}, 404, "got 'x'"),
        ("/layer", {"run": "a", "layer": "conv1", "variable": "x"}, 404, "got 'x'"),
        ("/layer", {"run": "a", "layer": "conv1", "since": "1.5"}, 400, "got '1.5'"),
        ("/layer", {"run": "a", "layer": "conv1", "since": 2**53 + 1}, 400, "to 9007199254740992"),
        ("/channel", {"run": "a", "layer": "conv1"}, 400, "expected the parameter 'channel'"),
        ("/channel", {"run": "a", "layer": "conv1", "channel": "4"}, 404, "0 to 3"),
        ("/channel", {"run": "a", "layer": "conv1", "channel": "-1"}, 404, "0 to 3"),
        ("/violations", {}, 400, "expected the parameter 'run'"),
        ("/violations", {"run": "c"}, 404, "got 'c'"),
        ("/function", {}, 400, "expected the parameter 'run'"),
        ("/function", {"run": "c"}, 404, "got 'c'"),
        ("/overlap", {}, 400, "expected the parameter 'run' 2 to 32 times, got it 0 times"),
        ("/overlap", {"run": "a"}, 400, "2 to 32 times, got it 1 times"),
        ("/overlap", {"run": ["a"] * 33}, 400, "2 to 32 times, got it 33 times"),
        ("/overlap", {"run": ["a", "c"]}, 404, "got 'c'"),
        ("/overlap", {"run": ["a", "b"], "layer": "x"}, 404, "2 runs to have it, got 'x'"),
        ("/overlap", {"run": ["a", "b"], "step": "1.5"}, 400, "got '1.5'"),
        ("/overlap", {"run": ["a", "b"], "unit": "x"}, 400, "one of weights, channels, got 'x'"),
        ("/overlap", {"run": ["a", "b"], "mask": "x"}, 400, "one of kept, trainable, got 'x'"),
        ("/overlap_layers", {}, 400, "expected the parameter 'run'"),
        ("/overlap_layers", {"run": "a"}, 400, "expected the parameter 'other'"),
        ("/overlap_layers", {"run": "c", "other": "a"}, 404, "got 'c'"),
        ("/overlap_layers", {"run": "a", "other": "c"}, 404, "got 'c'"),
        ("/overlap_layers", {"run": "a", "other": "b", "cols": "0"}, 400, "from 1 to 4096"),
        ("/overlap_layers", {"run": "a", "other": "b", "at": "x"}, 400, "Could not use at"),
        ("/overlap_layers", {"run": "a", "other": "b", "unit": ""}, 400, "got ''"),
        ("/overlap_layers", {"run": "a", "other": "b", "mask": "frozen"}, 400, "got 'frozen'"),
        ("/export.csv", {}, 400, "expected the parameter 'run'"),
        ("/export.csv", {"run": "c", "function": "1"}, 404, "got 'c'"),
        ("/export.csv", {"run": "a", "function": "2"}, 400, "from 0 to 1, got '2'"),
        ("/export.csv", {"run": "a", "channel": "1"}, 400, "expected the parameter 'layer'"),
        ("/export.csv", {"run": "a", "layer": "x"}, 404, "got 'x'"),
        ("/export.csv", {"run": "a", "layer": "conv1", "channel": "9"}, 404, "0 to 3"),
    ],
)
def test_400_and_404_say_what_was_expected(
    here: Board, route: str, query: dict[str, str], status: int, text: str
) -> None:
    code = {400: "bad_request", 404: "not_found"}[status]
    assert text in failed(here.get(route, **query), status, code)


@pytest.mark.promise("every_status")
@pytest.mark.parametrize("route", GOOD)
def test_500_tells_the_log_and_not_the_client(here: Board, route: str, monkeypatch, caplog) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("/home/me/secret")

    monkeypatch.setattr("tb_pastnet.reader.store.Store.catalog", fail)
    message = failed(here.get(route, **GOOD[route]), 500, "internal")
    assert "RuntimeError" in message
    assert "secret" not in message
    assert "/home/me/secret" in caplog.text


@pytest.mark.parametrize("route", GOOD)
@pytest.mark.parametrize(("error", "status"), [(NotFoundError, 404), (PermissionDeniedError, 403)])
def test_what_tensorboard_refuses_keeps_its_status(
    here: Board, route: str, error: type[PublicError], status: int, monkeypatch
) -> None:
    def refuse(*_: object) -> None:
        raise error("/home/me/secret")

    monkeypatch.setattr("tb_pastnet.reader.store.Store.catalog", refuse)
    code = {404: "not_found", 403: "forbidden"}[status]
    message = failed(here.get(route, **GOOD[route]), status, code)
    assert f"got status {status}" in message
    assert "secret" not in message


def test_an_export_that_is_too_long_is_refused(here: Board, monkeypatch) -> None:
    monkeypatch.setattr(routes, "MOST_LINES", 79)
    for query in ({}, {"layer": "conv1"}, {"function": 1}):
        text = failed(here.get("/export.csv", run="a", **query), 400, "bad_request")
        assert "expected at most 79 lines" in text
    for query in ({"channel": 1}, {"since": 30}):
        assert here.get("/export.csv", run="a", layer="conv1", **query).status_code == 200


def test_since_gives_only_what_is_new(here: Board) -> None:
    _, whole = here.arrays("/layer", run="a", layer="conv1")
    _, tail = here.arrays("/layer", run="a", layer="conv1", since=30)
    assert tail["steps"].tolist() == list(range(31, 41))
    assert tail["state"].tolist() == whole["state"][:, 30:].tolist()
    assert tail["delta"].tolist() == whole["delta"][:, 30:].tolist()
    for last in (99, 2**53):
        _, none = here.arrays("/layer", run="a", layer="conv1", since=last)
        assert none["state"].shape == (4, 0)


def test_records_of_several_runs_come_one_after_the_other(here: Board) -> None:
    alone = [here.get("/records", run=run, at=8, count=4).get_data() for run in "ab"]
    together = here.get("/records", run=["b", "a"], at=8, count=4)
    assert together.get_data() == alone[1] + alone[0]
    missing = here.get("/records", run=["a", "c"])
    assert "got 'c'" in failed(missing, 404, "not_found")


def test_a_large_answer_is_packed_for_those_who_can(here: Board) -> None:
    query = {"run": "a", "layer": "block/conv2"}
    plain = here.get("/layer", **query)
    packed = here.get("/layer", headers={"Accept-Encoding": "gzip"}, **query)
    assert packed.headers["Content-Encoding"] == "gzip"
    assert packed.headers["Vary"] == "Accept-Encoding"
    assert int(packed.headers["Content-Length"]) < int(plain.headers["Content-Length"])
    unpack(plain.get_data())


def test_the_static_files_are_a_fixed_map(tmp_path: Path) -> None:
    from tensorboard.plugins import base_plugin
    from werkzeug.test import Client

    for name in ("index.js", "index.css", "secret.txt", "notes.md", ".hidden.js"):
        (tmp_path / name).write_text("x")
    apps = plugin.PastNetPlugin(base_plugin.TBContext(), static=tmp_path).get_plugin_apps()
    assert {"/index.js", "/index.css"} <= set(apps)
    assert not {"/secret.txt", "/notes.md"} & set(apps)
    assert Client(apps["/index.css"]).get("/").mimetype == "text/css"


def test_a_missing_page_explains_itself(tmp_path: Path) -> None:
    from tensorboard.plugins import base_plugin
    from werkzeug.test import Client

    apps = plugin.PastNetPlugin(base_plugin.TBContext(), static=tmp_path / "x").get_plugin_apps()
    response = Client(apps["/index.js"]).get("/")
    assert response.mimetype == "text/javascript"
    assert "The page of PastNet is missing" in response.get_data(as_text=True)
    assert "export function render" in response.get_data(as_text=True)


def test_an_empty_log_lights_no_tab(tmp_path: Path) -> None:
    with board(tmp_path, "slow") as here:
        assert not here.client.get("/data/plugins_listing").json["pastnet"]["enabled"]


@pytest.mark.promise("fuzz")
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from([*GOOD, "/index.js", "/x"]),
    st.dictionaries(
        st.sampled_from(
            [
                "run",
                "other",
                "layer",
                "variable",
                "channel",
                "th",
                "cols",
                "at",
                "count",
                "since",
                "first",
                "last",
                "function",
                "step",
                "unit",
                "mask",
                "x",
            ]
        ),
        st.sampled_from(["a", "b", "channels", "conv1", "conv1/bias", "0", "1e-3", "-1", ".", ""])
        | st.text(),
    ),
)
def test_no_query_whatsoever_is_an_error_of_ours(
    here: Board, route: str, query: dict[str, str]
) -> None:
    response = here.get(route, **query)
    assert response.status_code in (200, 400, 404)
    if response.status_code != 200:
        failed(response, response.status_code, response.json["error"]["code"])
