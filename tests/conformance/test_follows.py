"""Weights that follow others: how far they are from these, and the share that a record covers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_pastnet.errors import InvalidArgument
from tests.conformance.room import Arrays
from tests.conformance.story import SIZES, moved
from tests.recorded import read_lineages

RATE = 0.05


def pair(size: int = 9) -> Arrays:
    rng = np.random.default_rng(size)
    online = rng.normal(size=(3, size)).astype("f4")
    return {"online/kernel": online, "target/kernel": online.copy()}


def train(room: Any, at: list[Arrays], steps: int) -> None:
    """The source moves, and each channel of the target at its own rate."""
    for step in range(1, steps + 1):
        online = moved({"online/kernel": at[-1]["online/kernel"]}, step)["online/kernel"]
        online[:, -1] += np.float32(0.01)  # the last channel rests otherwise
        target = at[-1]["target/kernel"]
        rates = RATE * np.arange(target.shape[1], dtype="f4") / target.shape[1]
        at.append({"online/kernel": online, "target/kernel": target + rates * (online - target)})
        room.put(at[-1])
        room.record(step)


@pytest.mark.parametrize("declared", ["pairs", "targets"])
def test_the_share_that_a_target_covers_is_that_of_numpy(begin: Any, declared: str) -> None:
    source, target = "online/kernel", "target/kernel"
    for size in SIZES if declared == "pairs" else [7]:
        at = [pair(size)]
        follows = {target: source} if declared == "pairs" else ["target/*"]
        room = begin(at[0], f"{size}", every=3, follows=follows)
        train(room, at, 6)
        room.run()
        (lineage,) = read_lineages(Path(room.logdir))
        (message,) = lineage.follows
        assert [(each.target, each.source, each.channels) for each in message.pairs] == [
            (target, source, size)
        ]
        assert message.pairs[0].unequal == 0
        before = 0
        for row, step in enumerate(message.steps.tolist()):
            assert message.past_steps[row] == before
            t, s = at[step][target].astype("f8"), at[step][source].astype("f8")
            path, gap = t - at[before][target], s - at[before][target]
            with np.errstate(invalid="ignore"):  # NaN where there was no distance
                expected = (path * gap).sum(axis=0) / (gap**2).sum(axis=0)
            distance, covered, walked = message.values[:, row]
            np.testing.assert_allclose(distance, np.linalg.norm(t - s, axis=0), 0.02)
            np.testing.assert_allclose(covered, expected, 0.02, 1e-7)
            np.testing.assert_allclose(walked, np.linalg.norm(path, axis=0), 0.02, 1e-7)
            before = step


def test_a_target_that_never_moves_is_a_finding(begin: Any) -> None:
    at = [pair()]
    room = begin(at[0], follows={"target/kernel": "online/kernel"})
    for step in range(1, 7):
        at.append({**at[-1], **moved({"online/kernel": at[-1]["online/kernel"]}, step)})
        room.put(at[-1])
        room.record(step)
    kinds = {finding.kind: finding for finding in room.log().findings()}
    assert (kinds["follows"].cause, kinds["follows"].layers) == ("never_moved", ("target",))


def test_a_target_that_is_its_own_source_is_refused(begin: Any) -> None:
    with pytest.raises(InvalidArgument):
        begin(pair(), follows={"target/kernel": "target/kernel"})
