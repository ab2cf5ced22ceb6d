"""How weights follow others, in messages that a reader checks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tb_pastnet.errors import DamagedRecord, InvalidArgument
from tb_pastnet.format import json_payload, limits, varint
from tb_pastnet.format.envelope import Kind, seal, unseal
from tb_pastnet.format.follows import MEASURES, FollowPair, Follows, decode_follows, encode_follows
from tb_pastnet.format.planes import deflate

PLACE: dict[str, Any] = {"tag": "follows", "step": 9, "lineage": 7}


def follows(*channels: int, records: int = 2) -> Follows:
    pairs = tuple(FollowPair(f"t{n}", f"s{n}", size, n or None) for n, size in enumerate(channels))
    rng = np.random.default_rng(0)
    values = rng.normal(size=(len(MEASURES), records, sum(channels))).astype("f4")
    steps = np.arange(1, records + 1)
    return Follows(pairs, steps - 1, steps, steps - 1, values)


@pytest.mark.parametrize("channels", [(1,), (7, 8), (63, 64, 65), (129, 4097)])
def test_what_is_written_is_read(channels: tuple[int, ...]) -> None:
    given = follows(*channels)
    back = decode_follows(encode_follows(given, **PLACE), **PLACE)
    assert back.pairs == given.pairs
    for name in ("sequence", "steps", "past_steps", "values"):
        np.testing.assert_array_equal(getattr(back, name), getattr(given, name))


def head() -> dict[str, Any]:
    payload = unseal(encode_follows(follows(3), **PLACE), Kind.FOLLOWS, **PLACE)
    reader = varint.Reader(payload)
    return json_payload.unpack(reader.take(reader.number()))


def sealed(values: int = 18, **changed: Any) -> bytes:
    packed = json_payload.pack({**head(), **changed})
    payload = varint.encode([len(packed)]) + packed + deflate(bytes(4 * values), 6)
    return seal(payload, Kind.FOLLOWS, **PLACE)


def test_unknown_measures_and_keys_are_passed_over() -> None:
    message = sealed(measures=["later", "moved", "distance"], more=1)
    back = decode_follows(message, **PLACE)
    assert np.isnan(back.values[1]).all()
    assert not back.values[[0, 2]].any()


@pytest.mark.parametrize(
    "changed",
    [
        {"values": 17},
        {"steps": [2, 1]},
        {"steps": [1]},
        {"sequence": [0, 0]},
        {"past_steps": [-1, 0]},
        {"measures": []},
        {"measures": ["moved", "moved", "distance"]},
        {"pairs": []},
        {"pairs": 2 * [{"target": "t", "source": "s", "channels": 1}]},
        {"pairs": [{"target": "t", "source": "s", "channels": 1 << 23}]},
        {"pairs": [{"target": "t", "source": "s", "channels": 3, "unequal": 4}]},
        {"pairs": [{"target": "t", "channels": 3}]},
        {"steps": [*range(limits.MAX_RECORDS + 1)]},
    ],
)
def test_what_does_not_fit_together_is_damaged(changed: dict[str, Any]) -> None:
    with pytest.raises(DamagedRecord):
        decode_follows(sealed(**changed), **PLACE)


def test_what_a_reader_would_refuse_is_not_written() -> None:
    given = follows(3)
    for wrong in (
        replace(given, values=given.values[:, :, 1:]),
        replace(given, steps=given.steps[::-1]),
        replace(given, pairs=(*given.pairs, *given.pairs)),
    ):
        with pytest.raises(InvalidArgument):
            encode_follows(wrong, **PLACE)
