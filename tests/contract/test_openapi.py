"""The description of the routes for programs is true, and says what `http_api.md` says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from werkzeug.datastructures import MultiDict

from tb_pastnet.core import channel_states
from tb_pastnet.format.tags import MASKS
from tb_pastnet.reader.figures import BLOCK as BLOCK_RECORDS
from tb_pastnet.reader.log import Log
from tb_pastnet.reader.overlap_sets import UNITS
from tb_pastnet.reader.series_source import LOCAL
from tb_pastnet.serve import plugin
from tb_pastnet.serve.http import parameters
from tb_pastnet.serve.http.answers import SCHEMA, Answer, pack
from tb_pastnet.serve.http.parameters import Query
from tb_pastnet.serve.routes import ROUTES
from tests import described
from tests.contract.test_http_api import BLOCK, sample_log, sections
from tests.described import DOCUMENT, answer_faults, container_faults, faults
from tests.tensorboards import PREFIX, Board

pytestmark = pytest.mark.promise("every_status")
HEADING = re.compile(r"^## `(/[a-z_.]+)(?:\?([^`]*))?`$", re.MULTILINE)


def documented() -> dict[str, set[str]]:
    """The parameters in the headings of `http_api.md`; those of a table are told in its text."""
    text = Path(plugin.__file__).with_name("http_api.md").read_text("utf-8")
    return {
        route: {part.rstrip("=") for part in query.split("&") if part}
        for route, query in HEADING.findall(text)
    }


def test_it_has_every_route_and_where_they_lie() -> None:
    assert set(DOCUMENT["paths"]) == set(ROUTES)
    assert all(list(item) == ["get"] for item in DOCUMENT["paths"].values())
    assert DOCUMENT["servers"] == [{"url": PREFIX}]
    assert DOCUMENT["info"]["version"] == str(SCHEMA)


class Asked(MultiDict[str, str]):
    """Arguments of a request that remember what was asked of them."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        super().__init__(pairs)
        self.names: set[str] = set()

    def get(self, key: str, *default: Any, **more: Any) -> Any:
        self.names.add(key)
        return super().get(key, *default, **more)

    def getlist(self, key: str, *types: Any) -> Any:
        self.names.add(key)
        return super().getlist(key, *types)

    def __contains__(self, key: object) -> bool:
        self.names.add(str(key))
        return super().__contains__(key)


def test_its_parameters_are_what_the_routes_ask_for(tmp_path: Path) -> None:
    sample_log(tmp_path)
    store = Log(tmp_path).store
    pairs = [("run", "dense"), ("run", "ticket"), ("other", "ticket"), ("layer", "conv1"),
             ("channel", "1")]  # fmt: skip
    for path, route in ROUTES.items():
        arguments = Asked(pairs)
        given = route(Query(store, LOCAL, arguments))
        assert arguments.names == set(described.parameters(path)), path
        assert isinstance(given, Answer)
        described_answer = described.resolved(described.operation(path)["responses"]["200"])
        assert list(described_answer["content"]) == [given.content_type], path


def test_it_has_the_parameters_of_the_other_document() -> None:
    told = {route: set(described.parameters(route)) for route in ROUTES}
    more = {"layer", "variable", "channel", "since", "function"}
    for name in more:
        assert f"`{name}" in sections()["/export.csv"]
    told["/export.csv"] -= more
    assert told == documented()


def test_its_limits_are_those_of_the_code() -> None:
    schemas = {
        name: one["schema"]
        for name, one in DOCUMENT["components"]["parameters"].items()
    }  # fmt: skip
    for name in ("first", "last", "since", "step", "at", "some_at"):
        assert schemas[name]["maximum"] == -schemas[name]["minimum"] == parameters.MAX_STEP
    assert schemas["cols"]["maximum"] == parameters.MOST_COLUMNS
    assert schemas["cols"]["default"] == parameters.COLUMNS
    assert schemas["count"] == {
        "type": "integer", "minimum": 1, "maximum": BLOCK_RECORDS, "default": BLOCK_RECORDS
    }  # fmt: skip
    assert schemas["th"]["default"] == channel_states.THRESHOLD
    assert schemas["unit"] == {"enum": list(UNITS), "default": UNITS[0]}
    assert schemas["mask"] == {"enum": list(MASKS), "default": MASKS[0]}
    some = schemas["runs"]
    assert (some["minItems"], some["maxItems"]) == (parameters.FEWEST_RUNS, parameters.MOST_RUNS)


def test_what_it_requires_is_required(here: Board) -> None:
    for route in ROUTES:
        told = described.parameters(route).values()
        needs = [one["name"] for one in told if one.get("required")]
        assert (here.get(route).status_code == 400) == bool(needs), route


@pytest.mark.parametrize("route", ROUTES)
def test_every_sample_is_what_it_describes(here: Board, route: str) -> None:
    for sample in BLOCK.finditer(sections()[route]):
        address = f"{PREFIX}{route}{sample['query']}"
        first = here.client.get(address)
        seen = [first, here.client.get(address, headers={"If-None-Match": first.headers["ETag"]})]
        if described.parameters(route):
            seen += [here.get(route), here.get(route, run=["x", "y"], layer="z", other="z")]
        found = [one.status_code for one in seen]
        assert found == [200, 304, 400, 404][: len(seen)]
        for one in seen:
            assert not answer_faults(route, one.status_code, one.headers, one.get_data())


def test_500_is_what_it_describes(here: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tb_pastnet.reader.store.Store.catalog", None)
    for route in ROUTES:
        answer = here.get(route, run="dense")
        assert answer.status_code == 500
        assert not answer_faults(route, 500, answer.headers, answer.get_data())


@pytest.mark.parametrize(
    ("value", "schema", "fault"),
    [
        ({"text": "a", "count": 1.5}, "Note", "/count: expected integer, got 1.5"),
        ({"text": "a", "count": True}, "Note", "/count: expected integer, got True"),
        ({"text": "a", "count": 0}, "Note", "/count: expected minimum 1, got 0"),
        ({"text": "a"}, "Note", "/count: missing"),
        ({"text": "a", "count": 1, "new": 1}, "Note", "/new: not described"),
        ([1, -1], "Shape", "/1: expected minimum 0, got -1"),
        ({}, "Shape", ": expected array, got {}"),
    ],
)
def test_a_wrong_answer_is_found(value: Any, schema: str, fault: str) -> None:
    assert faults(value, {"$ref": f"#/components/schemas/{schema}"}) == [fault]


def test_a_wrong_container_is_found() -> None:
    content = {"x-header": {"properties": {"sections": {"$ref": "#/components/schemas/Sections"}},
                            "required": []},
               "x-sections": {"a": {"dtype": ["f8"], "shape": ["K"]},
                              "b": {"dtype": ["u1", "u2"], "shape": ["L", "K"]}}}  # fmt: skip
    good = {"a": np.zeros(3), "b": np.zeros((2, 3), np.uint8)}
    assert not container_faults(pack({}, good), content)
    content["x-sections"]["d"] = {"dtype": ["f4"], "shape": ["K"], "optional": True}
    assert not container_faults(pack({}, good), content)
    more = {**good, "d": np.zeros(3, np.float32)}
    assert not container_faults(pack({}, more), content)
    short = {**good, "d": np.zeros(2, np.float32)}
    assert container_faults(pack({}, short), content) == [
        "d: expected ['K'] of {'K': 3, 'L': 2}, got (2,)"
    ]
    for wrong, fault in [
        ({"a": np.zeros(3, np.float32)}, "a: expected ['f8'], got float32"),
        ({"a": np.zeros(4)}, "b: expected ['L', 'K'] of {'K': 4, 'L': 2}, got (2, 3)"),
        ({"a": np.zeros((3, 1))}, "a: expected ['K'] of {'K': 3}, got (3, 1)"),
        ({"c": np.zeros(3)}, "expected the sections ['a', 'b'], got ['a', 'b', 'c']"),
    ]:
        assert container_faults(pack({}, {**good, **wrong}), content) == [fault]
