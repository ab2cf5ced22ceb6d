"""Arrays that may be on an accelerator, by stand-ins for those of JAX."""

from __future__ import annotations

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from tb_pastnet.record.device_array import fetch, values_of


class Device(NamedTuple):
    """Where an array is."""

    platform: str


@pytest.mark.parametrize(("platform", "copies"), [("gpu", 1), ("tpu", 1), ("cpu", 0)])
def test_only_an_array_on_an_accelerator_is_fetched(platform, copies):
    asked = []
    array = SimpleNamespace(
        devices=lambda: {Device(platform)}, copy_to_host_async=lambda: asked.append(platform)
    )
    fetch(array)
    assert len(asked) == copies


def test_other_arrays_are_left_alone():
    fetch(np.ones(3))
    assert values_of(np.arange(3)).tolist() == [0, 1, 2]


def in_pieces(pieces, *, copies=False):
    shards = [
        SimpleNamespace(index=index, data=np.array(data), replica_id=replica)
        for index, data, replica in pieces
    ]
    return SimpleNamespace(
        addressable_shards=shards, is_fully_replicated=copies, shape=(4,), dtype=np.float32
    )


def test_pieces_are_put_together_without_their_copies():
    pieces = [
        (np.s_[:2], [1, 2], 0),
        (np.s_[:2], [8, 9], 1),  # a copy, which would show
        (np.s_[2:], [3, 4], 0),
    ]
    assert values_of(in_pieces(pieces)).tolist() == [1, 2, 3, 4]


def test_of_copies_the_first_is_read():
    # In another process none of them may be the one of number 0.
    pieces = [(np.s_[:], [1, 2, 3, 4], 1), (np.s_[:], [5, 6, 7, 8], 2)]
    assert values_of(in_pieces(pieces, copies=True)).tolist() == [1, 2, 3, 4]
