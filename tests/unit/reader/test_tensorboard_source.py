from __future__ import annotations

from unittest.mock import ANY

import numpy as np
import pytest
from tensorboard import errors

from tb_pastnet.reader.series_source import StoredMessage
from tb_pastnet.reader.tensorboard_source import TensorBoardSource
from tests.providers import CALLER, MemoryProvider, Tree

BYTES = np.frombuffer(b"abc", np.uint8)
TREE: Tree = {
    run: {tag: [(3, float("nan"), BYTES, b"c")] for tag in ("t", "u", "v")} for run in "abc"
}


def test_stamps_compare_equal_even_with_nan() -> None:
    source = TensorBoardSource(MemoryProvider(TREE))
    assert source.listing(CALLER) == source.listing(CALLER)
    assert source.listing(CALLER)[0]["a"]["t"].content == b"c"


def test_a_run_that_cant_be_listed_is_named_and_the_others_are_listed() -> None:
    listing, failed = TensorBoardSource(MemoryProvider(TREE, ["b/u"])).listing(CALLER)
    assert (sorted(listing), failed) == (["a", "c"], ["b"])


def test_around_a_series_at_fault_the_others_are_listed() -> None:
    found = TensorBoardSource(MemoryProvider(TREE, ["b/u"])).probe(
        CALLER, "b", ["t", "u", "v", "none"]
    )
    assert sorted(found) == ["t", "v"]


def test_one_call_reads_many_series() -> None:
    provider = MemoryProvider(TREE)
    readings, failed = TensorBoardSource(provider).read(CALLER, ["a", "b"], ["t", "u"])
    assert len(provider.reads) == 1
    assert sorted(readings) == [("a", "t"), ("a", "u"), ("b", "t"), ("b", "u")]
    assert readings["a", "t"] == [StoredMessage(3, ANY, b"abc")]
    assert failed == []


def test_a_call_that_fails_is_split_until_the_fault_stands_alone() -> None:
    readings, failed = TensorBoardSource(MemoryProvider(TREE, ["b/u", "c/v"])).read(
        CALLER, TREE, ["t", "u", "v"]
    )
    assert failed == [("b", "u"), ("c", "v")]
    assert len(readings) == 7


@pytest.mark.parametrize(
    "array",
    [np.zeros(3, np.int8), np.zeros((1, 3), np.uint8), np.array(b"abc", object), "text", None],
)
def test_anything_but_bytes_is_no_message(array: object) -> None:
    readings, _ = TensorBoardSource(MemoryProvider({"a": {"t": [(1, 1.0, array, b"")]}})).read(
        CALLER, ["a"], ["t"]
    )
    assert readings["a", "t"][0].data is None


def test_nothing_asked_is_nothing_read() -> None:
    provider = MemoryProvider(TREE)
    assert TensorBoardSource(provider).read(CALLER, [], ["t"]) == ({}, [])
    assert TensorBoardSource(provider).read(CALLER, ["a"], []) == ({}, [])
    assert provider.reads == []


def test_what_tensorboard_refuses_is_passed_on() -> None:
    class Refusing(MemoryProvider):
        def _chosen(self, *args):
            raise errors.NotFoundError("no such experiment")

    source = TensorBoardSource(Refusing(TREE))
    with pytest.raises(errors.NotFoundError, match="no such experiment"):
        source.listing(CALLER)
    with pytest.raises(errors.NotFoundError, match="no such experiment"):
        source.read(CALLER, ["a"], ["t"])
