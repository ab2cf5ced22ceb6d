"""A run that is deleted while it is read is never told as one whose records are unreadable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from werkzeug.datastructures import MultiDict
from werkzeug.test import Client

from tb_pastnet.format.block import Block, encode_block
from tb_pastnet.format.description import Series, encode_series
from tb_pastnet.format.tags import channels_tag
from tb_pastnet.reader.series_source import RunDeleted
from tb_pastnet.reader.store import Store
from tb_pastnet.serve.http.parameters import Query
from tb_pastnet.serve.http.web import application
from tb_pastnet.serve.routes import ROUTES
from tests import event_files as files
from tests import probed
from tests.providers import CALLER, MemoryProvider, MemoryWriter, memory_run

KERNEL = "conv1/kernel"
ASKED = {"run": "a", "layer": "conv1", "channel": "0"}


def masked(provider: MemoryProvider) -> MemoryWriter:
    writer = memory_run(provider, "a", range(1, 17))
    writer.masks(17, {("kept", KERNEL): np.arange(36) % 2})
    memory_run(provider, "b", range(1, 17), lineage=2)
    return writer


@pytest.fixture
def provider() -> MemoryProvider:
    return MemoryProvider()


def ask(here: Store, route: str) -> Any:
    pairs = [*ASKED.items(), ("run", "b"), ("other", "b")]
    query = Query(here, CALLER, MultiDict(pairs))
    client = Client(application(lambda request: ROUTES[route](query)))
    return client.get(route)


# The index lists what is there, and scalars lie in other directories.
@pytest.mark.parametrize("route", sorted(ROUTES.keys() - {"/index", "/scalars"}))
def test_an_answer_that_needs_it_is_404_and_nothing_of_it_is_kept(
    provider: MemoryProvider, route: str
) -> None:
    writer = masked(provider)
    probed.write(writer, probed.change(range(1, 17)))
    here = Store(provider, fresh_for=3600)
    here.catalog(CALLER)
    tree = provider.tree.pop(writer.tb_run)
    answer = ask(here, route)
    assert answer.status_code == 404
    assert answer.json["error"] == {
        "code": "not_found",
        "message": "Could not read the run 'a': expected its listed data, got "
        "nothing. It was deleted or replaced in the meantime: reload.",
    }
    provider.tree[writer.tb_run] = tree
    assert ask(here, route).status_code == 200


@pytest.mark.parametrize(
    "read",
    [
        lambda here, run: here.reader(CALLER, run).series(KERNEL),
        lambda here, run: here.reader(CALLER, run).state_series(KERNEL),
        lambda here, run: here.reader(CALLER, run).masks,
        lambda here, run: list(here.reader(CALLER, run).each([KERNEL], lambda *found: found)),
    ],
)
def test_each_way_to_read_a_run_tells_that_it_vanished(
    provider: MemoryProvider, read: Callable[[Store, Any], object]
) -> None:
    writer = masked(provider)
    here = Store(provider, fresh_for=3600)
    run = here.catalog(CALLER).runs["a"]
    provider.tree.pop(writer.tb_run)
    with pytest.raises(RunDeleted, match="a"):
        read(here, run)


class Deleting(MemoryProvider):
    """Deletes a run as soon as all are listed."""

    victim = ""

    def read_tensors(self, *args: Any, **more: Any) -> Any:
        self.tree.pop(self.victim, None)
        return super().read_tensors(*args, **more)


def test_the_index_leaves_out_a_run_that_vanishes_while_it_is_made() -> None:
    provider = Deleting()
    provider.victim = memory_run(provider, "a", range(1, 17)).tb_run
    memory_run(provider, "b", range(1, 17), lineage=2)
    assert list(Store(provider).catalog(CALLER).runs) == ["b"]


def test_the_index_leaves_out_a_users_own_series_that_vanishes() -> None:
    provider = Deleting()
    one, tag = np.array([1]), channels_tag("w")
    block = Block(one, one, one - 1, files.codes([1], 4))
    content = encode_series(Series((3, 3, 1, 4), "-1", 4))
    provider.add("own", tag, 1, encode_block(block, tag=tag, lineage=0), content)
    assert list(Store(provider).catalog(CALLER).runs) == ["own"]
    provider.victim = "own"
    assert list(Store(provider).catalog(CALLER).runs) == []


def test_a_run_without_records_yet_is_no_run_that_vanished(provider: MemoryProvider) -> None:
    memory_run(provider, "a", range(0))
    here = Store(provider)
    run = here.catalog(CALLER).runs["a"]
    assert len(here.reader(CALLER, run).state_series(KERNEL).steps) == 0


def test_what_was_kept_of_a_run_goes_with_it(provider: MemoryProvider) -> None:
    writer = masked(provider)
    here = Store(provider, fresh_for=0)
    for route in ROUTES:
        assert ask(here, route).status_code == 200
    caches = (here.large, here.small)
    provider.tree.pop(writer.tb_run)
    here.catalog(CALLER)
    assert [key for one in caches for key in one._values if "a" in str(key).split("'")] == []
    assert sum(one.held for one in caches) == sum(
        value.size for one in caches for _, value in one._values.values()
    )
