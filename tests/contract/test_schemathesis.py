"""Requests that schemathesis makes of the routes' description: each answer is as described."""

from __future__ import annotations

import copy
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from werkzeug.datastructures import Headers

from tb_pastnet.serve.routes import ROUTES
from tests.described import DOCUMENT, answer_faults
from tests.tensorboards import PREFIX, Board

pytestmark = [pytest.mark.prove, pytest.mark.promise("fuzz")]
openapi = pytest.importorskip(
    "schemathesis.openapi", reason="schemathesis isn't installed: it belongs to the extra `prove`"
)

from schemathesis import GenerationMode  # noqa: E402
from schemathesis.specs.openapi.checks import negative_data_rejection  # noqa: E402

SETTINGS = settings(max_examples=60, suppress_health_check=list(HealthCheck))
# What the sample log has, so that requests get past the look-up of names.
NAMES = {
    "run": ["dense", "ticket"],
    "other": ["dense", "ticket"],
    "layer": ["conv1"],
    "some_layer": ["conv1"],
    "variable": ["conv1/kernel", "conv1/bias"],
    "channel": [0, 1],
    "some_channel": [0, 1],
}


def document(aimed: bool) -> dict[str, Any]:
    """The description; aimed: with the names of the sample log instead of any."""
    found = copy.deepcopy(DOCUMENT)
    told = found["components"]["parameters"]
    for name, values in NAMES.items() if aimed else ():
        told[name]["schema"] = {"enum": values}
    if aimed:
        told["runs"]["schema"]["items"] = {"enum": NAMES["run"]}
    return found


@pytest.fixture(autouse=True)
def _no_word_from_the_validator(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.WARNING, logger="tensorboard"):
        yield
    assert "warning will become an error" not in caplog.text


def check(case: Any, here: Board) -> int:
    """Sends a request; the answer has to be what is described, in schemathesis's eyes and in ours."""
    if {"first", "last"} <= set(case.query) and valid(case):
        # That a span doesn't end before it begins is described in words only.
        span = case.query["first"], case.query["last"]
        case.query["first"], case.query["last"] = sorted(span, key=int)  # some are text
    if case.operation.path == "/export.csv" and "layer" not in case.query and valid(case):
        case.query.pop("channel", None)  # that it is one of a layer is, too
    # TensorBoard packs text; schemathesis doesn't unpack it.
    answer = case.call(app=here.app, headers={"Accept-Encoding": "identity"})
    # A table of the probe has no layer, whatever else is asked for.
    lenient = case.operation.path == "/export.csv" and not valid(case)
    case.validate_response(answer, excluded_checks=[negative_data_rejection] if lenient else [])
    if case.method != "GET":
        assert (answer.status_code, answer.headers["allow"]) == (405, ["GET"])
        return 405
    headers = Headers([(name, value) for name, (value,) in answer.headers.items()])
    assert not answer_faults(case.operation.path, answer.status_code, headers, answer.content)
    return int(answer.status_code)


def valid(case: Any) -> bool:
    return bool(case.meta.generation.mode == GenerationMode.POSITIVE)


class Seen:
    """Counts answers by status."""

    def __init__(self) -> None:
        self.statuses: Counter[int] = Counter()

    def said(self, what: str) -> str:
        count = sum(self.statuses.values())
        kinds = ", ".join(str(status) for status in sorted(self.statuses))
        return f"{count:,} requests with {what} (answered {kinds}): 0 of 5xx, all as described"


@pytest.fixture(scope="module")
def seen(here: Board) -> dict[str, Seen]:
    return {"any names": Seen(), "names of the log": Seen()}


@openapi.from_dict(document(aimed=False)).parametrize()
@SETTINGS
def test_any_request_is_answered_as_described(
    case: Any, here: Board, seen: dict[str, Seen]
) -> None:
    seen["any names"].statuses[check(case, here)] += 1


@openapi.from_dict(document(aimed=True)).parametrize()
@SETTINGS
def test_a_request_for_what_is_there_is_answered_as_described(
    case: Any, here: Board, seen: dict[str, Seen]
) -> None:
    seen["names of the log"].statuses[check(case, here)] += 1


def test_enough_was_asked(here: Board, seen: dict[str, Seen], figure: Callable[..., None]) -> None:
    for what, found in seen.items():
        assert sum(found.statuses.values()) > 20 * len(ROUTES)
        assert {200, 400, 404, 405} <= set(found.statuses) <= {200, 304, 400, 404, 405}
        figure(found.said(what))


def test_the_routes_lie_where_the_description_says(here: Board) -> None:
    schema = openapi.from_dict(DOCUMENT)
    schema.validate()
    assert {one.ok().full_path for one in schema.get_all_operations()} == {
        PREFIX + route for route in ROUTES
    }
