"""The inspector follows the keys: it names a channel with that one's numbers, and never without any."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.browser import clean
from tests.e2e.made_logs import made_tab

AT = "&p.pastnet.v=layer&p.pastnet.l=block%2Fconv2&p.pastnet.r=drift&p.pastnet.s=900&p.pastnet.c=3&p.pastnet.o=index"


def test_the_inspector_shows_each_channel_with_its_own_numbers(tmp_path: Path) -> None:
    keys = ["ArrowDown"] * 5 + ["ArrowUp"]
    with made_tab("masks", tmp_path) as tab:
        found = clean(tab.drive("steppedChannels", hash=AT, keys=keys))
    told = found["told"]
    assert found["last"] == "Channel 7"
    assert {"Channel 3", "Channel 7"} <= told.keys()
    assert "channel 7" in found["titles"]
    # One channel's numbers don't change while the step doesn't: neither another's nor none are shown.
    assert {name: numbers for name, numbers in told.items() if len(numbers) > 1} == {}
    assert len({numbers[0] for numbers in told.values()}) > 1
