"""The inspector follows the keys: it names a channel with that one's numbers, or says that they are on their way."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.browser import clean
from tests.e2e.made_logs import made_tab

WAITING = "…"
AT = "&p.pastnet.v=layer&p.pastnet.l=block%2Fconv2&p.pastnet.r=drift&p.pastnet.s=900&p.pastnet.c=3&p.pastnet.o=index"


def test_the_inspector_shows_each_channel_with_its_own_numbers(tmp_path: Path) -> None:
    keys = ["ArrowDown"] * 5 + ["ArrowUp"]
    with made_tab("masks", tmp_path) as tab:
        found = clean(tab.drive("steppedChannels", hash=AT, keys=keys))
    told = found["told"]
    assert found["last"] == "Channel 7"
    assert {"Channel 3", "Channel 7"} <= told.keys()
    assert "channel 7" in found["titles"]
    # One channel's numbers don't change while the step doesn't: another's are never shown. A slow server may let the
    # page say that it waits.
    known = {name: [one for one in numbers if WAITING not in one] for name, numbers in told.items()}
    assert {name: numbers for name, numbers in known.items() if len(numbers) > 1} == {}
    assert known["Channel 3"] != known["Channel 7"] != []


@pytest.mark.parametrize(
    ("at", "picture"), [(AT, ".heat-plot"), ("&p.pastnet.v=network&p.pastnet.s=900", ".run-column")]
)
def test_a_key_takes_over_from_a_resting_pointer(tmp_path: Path, at: str, picture: str) -> None:
    keys = ["ArrowLeft", "ArrowLeft", "ArrowRight"]
    with made_tab("masks", tmp_path) as tab:
        told = clean(tab.drive("keyedUnderPointer", hash=at, picture=picture, keys=keys))
    pointed, once, twice, back, moved = told
    assert pointed == moved
    assert len({*map(tuple, (pointed, once, twice))}) == 3
    assert back == once
    assert all(pill == numbers for pill, numbers in told)
