"""TensorBoard fails to list while it loads: what is known is shown, and nothing is an error of ours."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tensorboard import context
from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from werkzeug.datastructures import MultiDict
from werkzeug.test import Client

from tb_pastnet.format.tags import TAG_TIMELINE, channels_tag
from tb_pastnet.reader import notes
from tb_pastnet.reader.series_source import NotListed, RequestContext
from tb_pastnet.reader.store import Store
from tb_pastnet.reader.tensorboard_source import TensorBoardSource
from tb_pastnet.serve.http.parameters import Query
from tb_pastnet.serve.http.web import application
from tb_pastnet.serve.routes import ROUTES
from tests import event_files as files
from tests.providers import CALLER, MemoryProvider, memory_run

ASKED = [*{"run": "a", "layer": "conv1", "channel": "0"}.items(), ("run", "b"), ("other", "b")]
REAL = RequestContext(context.RequestContext(), "")
CHANGED = RuntimeError("dictionary changed size during iteration")


class Failing(MemoryProvider):
    """Fails to list runs, or series, where it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.no_runs: Exception | None = None
        self.no_series: Exception | None = None

    def list_runs(self, *args: Any, **more: Any) -> Any:
        if self.no_runs:
            raise self.no_runs
        return super().list_runs(*args, **more)

    def list_tensors(self, *args: Any, **more: Any) -> Any:
        if self.no_series:
            raise self.no_series
        return super().list_tensors(*args, **more)


@pytest.fixture
def provider() -> Failing:
    provider = Failing()
    memory_run(provider, "a", range(1, 17))
    memory_run(provider, "b", range(1, 17), lineage=2)
    return provider


def ask(here: Store, route: str, caller: RequestContext = CALLER) -> Any:
    def answer(request: Any) -> Any:
        return ROUTES[route](Query(here, caller, MultiDict(ASKED)))

    return Client(application(answer)).get(route)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("error", [KeyError("a/pastnet.0001"), CHANGED])
def test_where_runs_cant_be_listed_those_with_series_of_ours_are_shown(
    provider: Failing, route: str, error: Exception
) -> None:
    expected = ask(Store(provider), route)
    provider.no_runs = error
    answer = ask(Store(provider), route)
    assert answer.status_code == expected.status_code == 200
    assert answer.get_data() == expected.get_data()


@pytest.mark.parametrize("route", ROUTES)
def test_where_nothing_can_be_listed_any_more_what_was_known_is_shown(
    provider: Failing, route: str
) -> None:
    here = Store(provider, fresh_for=0)
    known = ask(here, route)
    provider.no_runs, provider.no_series = KeyError("a"), CHANGED
    answer = ask(here, route)
    assert answer.status_code == 200
    if route == "/index":
        assert answer.json == {**known.json, "warnings": [notes.NOT_LISTED]}
    else:
        assert answer.get_data() == known.get_data()


def test_the_warning_goes_when_tensorboard_lists_again(provider: Failing) -> None:
    here = Store(provider, fresh_for=0)
    known = ask(here, "/index").json
    provider.no_runs, provider.no_series = KeyError("a"), CHANGED
    # Once, however often it fails.
    assert [ask(here, "/index").json["warnings"] for _ in range(2)] == 2 * [[notes.NOT_LISTED]]
    provider.no_runs = provider.no_series = None
    memory_run(provider, "c", range(1, 17), lineage=3)
    healed = ask(here, "/index").json
    assert (healed["warnings"], len(healed["runs"])) == ([], len(known["runs"]) + 1)


@pytest.mark.parametrize("route", ROUTES)
def test_where_nothing_was_known_the_answer_is_503(provider: Failing, route: str) -> None:
    provider.no_runs, provider.no_series = KeyError("/secret/a"), CHANGED
    here = Store(provider, fresh_for=0)
    answer = ask(here, route)
    assert (answer.status_code, answer.json["error"]["code"]) == (503, "unavailable")
    assert answer.json["error"]["message"].startswith("Could not list the runs: expected ")
    assert b"secret" not in answer.get_data()
    provider.no_runs = provider.no_series = None
    assert ask(here, route).status_code == 200


def test_a_run_that_was_half_listed_is_listed_again(provider: Failing) -> None:
    """A tag that TensorBoard has just begun makes it fail for the run, and then for the tag."""
    here = Store(provider, fresh_for=0)
    run = next(iter(provider.tree))
    provider.broken = {f"{run}/{TAG_TIMELINE}", f"{run}/{channels_tag('conv1/kernel')}"}
    assert len(here.catalog(CALLER).runs["a"].axis.steps) == 0
    provider.broken = set()
    assert len(here.catalog(CALLER).runs["a"].axis.steps) == 16


def test_a_directory_that_goes_before_its_first_event_is_loaded(tmp_path: Path) -> None:
    loaded, vanishing = (files.write_run(tmp_path, run) for run in "ab")
    multiplexer = EventMultiplexer(tensor_size_guidance={"pastnet": 0})
    multiplexer.AddRunsFromDirectory(str(tmp_path))
    multiplexer.GetAccumulator(loaded.tb_run).Reload()
    shutil.rmtree(vanishing.directory)
    provider = MultiplexerDataProvider(multiplexer, str(tmp_path))
    with pytest.raises(Exception, match="permanently deleted"):
        provider.list_runs(REAL.tensorboard, experiment_id="")
    answer = ask(Store(provider), "/index", REAL)
    assert answer.status_code == 200
    assert [run["name"] for run in answer.json["runs"]] == ["a"]


def test_an_error_of_tensorboard_is_told_apart_from_ours(provider: Failing) -> None:
    provider.no_runs, provider.no_series = KeyError("a"), CHANGED
    with pytest.raises(NotListed, match="RuntimeError: dictionary changed size") as raised:
        TensorBoardSource(provider).runs(CALLER)
    assert raised.value.__cause__ is CHANGED
