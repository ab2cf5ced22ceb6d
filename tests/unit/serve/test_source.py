from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pytest
from tensorboard import errors
from tensorboard.data import provider as tb

from tb_pastnet.serve.source import ALL, Caller, Source

CALLER = Caller("context", "experiment")


class Provider:
    """Answers as TensorBoard's do: one series that it can't convert fails the whole call."""

    def __init__(self, tree: dict[str, dict[str, list[Any]]], broken: Collection[str] = ()) -> None:
        self.tree, self.broken = tree, set(broken)
        self.calls: list[tuple[str, str]] = []

    def _chosen(self, ctx, experiment_id, plugin_name, run_tag_filter) -> dict[str, dict[str, Any]]:
        assert (ctx, experiment_id, plugin_name) == ("context", "experiment", "pastnet")
        runs, tags = run_tag_filter.runs, run_tag_filter.tags
        found = {
            run: {tag: x for tag, x in by_tag.items() if tags is None or tag in tags}
            for run, by_tag in self.tree.items()
            if runs is None or run in runs
        }
        if any(f"{run}/{tag}" in self.broken for run, by_tag in found.items() for tag in by_tag):
            raise ValueError("cannot reshape array")
        return found

    def list_runs(self, ctx, *, experiment_id):
        return [tb.Run(name, name, 0.0) for name in self.tree]

    def list_tensors(self, ctx, *, experiment_id, plugin_name, run_tag_filter):
        found = self._chosen(ctx, experiment_id, plugin_name, run_tag_filter)
        return {
            run: {
                tag: tb.TensorTimeSeries(
                    max_step=7,
                    max_wall_time=float("nan"),
                    plugin_content=b"c",
                    description="",
                    display_name="",
                )
                for tag in by_tag
            }
            for run, by_tag in found.items()
        }

    def read_tensors(self, ctx, *, experiment_id, plugin_name, downsample, run_tag_filter):
        self.calls.append((sorted(run_tag_filter.runs), sorted(run_tag_filter.tags)))
        assert downsample == ALL
        found = self._chosen(ctx, experiment_id, plugin_name, run_tag_filter)
        return {
            run: {tag: [tb.TensorDatum(3, 1.5, x) for x in arrays] for tag, arrays in tags.items()}
            for run, tags in found.items()
        }


BYTES = np.frombuffer(b"abc", np.uint8)
TREE = {run: {tag: [BYTES] for tag in ("t", "u", "v")} for run in ("a", "b", "c")}


def test_stamps_compare_equal_even_with_nan() -> None:
    source = Source(Provider(TREE))
    assert source.listing(CALLER) == source.listing(CALLER)
    assert source.listing(CALLER)[0]["a"]["t"].content == b"c"


def test_a_run_that_cant_be_listed_is_named_and_the_others_are_listed() -> None:
    listing, failed = Source(Provider(TREE, ["b/u"])).listing(CALLER)
    assert (sorted(listing), failed) == (["a", "c"], ["b"])


def test_around_a_series_at_fault_the_others_are_listed() -> None:
    found = Source(Provider(TREE, ["b/u"])).probe(CALLER, "b", ["t", "u", "v", "none"])
    assert sorted(found) == ["t", "v"]


def test_one_call_reads_many_series() -> None:
    provider = Provider(TREE)
    readings, failed = Source(provider).read(CALLER, ["a", "b"], ["t", "u"])
    assert len(provider.calls) == 1
    assert sorted(readings) == [("a", "t"), ("a", "u"), ("b", "t"), ("b", "u")]
    assert readings["a", "t"] == [(3, 1.5, b"abc")]
    assert failed == []


def test_a_call_that_fails_is_split_until_the_fault_stands_alone() -> None:
    readings, failed = Source(Provider(TREE, ["b/u", "c/v"])).read(CALLER, TREE, ["t", "u", "v"])
    assert failed == [("b", "u"), ("c", "v")]
    assert len(readings) == 7


@pytest.mark.parametrize(
    "array",
    [np.zeros(3, np.int8), np.zeros((1, 3), np.uint8), np.array(b"abc", object), "text", None],
)
def test_anything_but_bytes_is_no_message(array: object) -> None:
    readings, _ = Source(Provider({"a": {"t": [array]}})).read(CALLER, ["a"], ["t"])
    assert readings["a", "t"][0].data is None


def test_nothing_asked_is_nothing_read() -> None:
    provider = Provider(TREE)
    assert Source(provider).read(CALLER, [], ["t"]) == ({}, [])
    assert Source(provider).read(CALLER, ["a"], []) == ({}, [])
    assert provider.calls == []


def test_what_tensorboard_refuses_is_passed_on() -> None:
    class Refusing(Provider):
        def _chosen(self, *args):
            raise errors.NotFoundError("no such experiment")

    source = Source(Refusing(TREE))
    with pytest.raises(errors.NotFoundError, match="no such experiment"):
        source.listing(CALLER)
    with pytest.raises(errors.NotFoundError, match="no such experiment"):
        source.read(CALLER, ["a"], ["t"])
