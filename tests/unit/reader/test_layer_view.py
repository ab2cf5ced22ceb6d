from __future__ import annotations

from collections import Counter

import numpy as np

from tb_pastnet.core import channel_states
from tb_pastnet.core.account import Account
from tb_pastnet.core.quantize import ZERO
from tb_pastnet.core.statistics import STATISTICS
from tb_pastnet.reader.layer_view import channel_records
from tb_pastnet.reader.series import RecordSeries
from tests import event_files as files
from tests.all_states import all_states


def test_a_channel_is_told_in_words_and_numbers() -> None:
    steps = np.arange(1, 13)
    codes = files.codes(steps, 2)
    files.freeze(codes, slice(4, None), slice(0, 1))
    codes[1, 0, 0] = ZERO
    files.poison(codes, slice(2, 3), slice(0, 1))
    none = np.zeros(12)
    series = RecordSeries(
        steps, steps - 1, none, none, none.astype(int), codes, Account(), Counter()
    )
    told = all_states(codes, steps, steps - 1, measured=channel_states.seen(codes))
    found = channel_records(series.part(slice(None), slice(0, 1)), told[:, :1])
    assert set(found) == {
        "steps", "past_steps", "state", "violated", "relative_delta", "changes", *STATISTICS,
    }  # fmt: skip
    assert found["state"] == ["moving"] * 2 + ["nonfinite", "reactivated"] + ["frozen"] * 8
    assert found["changes"] == [
        {"step": 3, "from": "moving", "to": "nonfinite"},
        {"step": 4, "from": "nonfinite", "to": "reactivated"},
        {"step": 5, "from": "reactivated", "to": "frozen"},
    ]
    assert [found["relative_delta"][at] for at in (0, 2)] == [None, None]
    assert found["relative_delta"][4:] == [0.0] * 8
    assert found["nonfinite"][:4] == [0, 0, 2, 0]
    assert found["violated"] == [False] * 12
    assert all(len(found[name]) == 12 for name in STATISTICS)
