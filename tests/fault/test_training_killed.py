"""kill -9 while Keras trains: resumed from its checkpoint, the log goes on into the same picture.

The same picture is that of a training that nobody killed: the same states and deltas at each step.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.fault.trainings import Trainings
from tests.recorded import Recorded, read_lineages
from tests.tensorboards import LOADERS, board

ROOT = Path(__file__).parents[2]
KILLS = 200


class Ended(NamedTuple):
    """What came of a training: acknowledged steps, its exit code (negative: a signal), its errors."""

    acknowledged: list[int]
    code: int
    seconds: float


class KilledTrainings(Trainings):
    """See `tests.fault.training`."""

    def __init__(self, errors: Path) -> None:
        super().__init__("tests.fault.training", errors)

    def train(
        self, logdir: Path, saved: Path | str = "", steps: int = 30, end: str = "", kill: int = 0
    ) -> Ended:
        """Trains, and kills it some time after so many lines that acknowledge a step."""
        pid = self.order(str(logdir), str(saved), steps, end)
        acknowledged: list[int] = []
        last = time.monotonic()
        while not isinstance(answer := self.answer(), dict):
            acknowledged.append(answer)
            last = time.monotonic()
            if len(acknowledged) == kill:
                time.sleep(random.uniform(0, 0.02))
                os.kill(pid, signal.SIGKILL)
        return Ended(acknowledged, answer["status"], time.monotonic() - last)


@pytest.fixture(scope="module")
def trainings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KilledTrainings]:
    made = KilledTrainings(tmp_path_factory.mktemp("errors") / "errors.txt")
    yield made
    made.close()


@pytest.mark.prove
@pytest.mark.promise("kill_9")
def test_kill_9_while_keras_trains(tmp_path: Path, trainings: KilledTrainings, figure: Any) -> None:
    random.seed(7)
    kills = KILLS
    acknowledged: set[int] = set()
    for number in range(kills):
        ended = trainings.train(
            tmp_path / "killed", tmp_path / "saved.keras", 100_000, kill=random.randint(3, 30)
        )
        assert ended.code == -signal.SIGKILL
        acknowledged |= set(ended.acknowledged)
        # As each kill left it, for the tab.
        newest = max((tmp_path / "killed").iterdir())
        name = f"{number:03}-{max(ended.acknowledged)}"
        shutil.copytree(newest, tmp_path / "states" / name / newest.name)
    opened = sum(opens(tmp_path / "states", loader) for loader in LOADERS)
    known = check(read_lineages(tmp_path / "killed"), kills)
    assert acknowledged <= known
    assert known == set(range(1, max(known) + 1))
    same_picture(tmp_path / "both", tmp_path / "killed", trainings, max(known))
    assert opened == 2 * kills
    figure(
        f"{kills} kills of a Keras training: 0 of {len(acknowledged):,} acknowledged steps lost, "
        f"{opened} of {2 * kills} opened in both loaders, resumed {kills} of {kills} times into the "
        f"picture of one that nobody killed"
    )


def opens(logdir: Path, loader: str) -> int:
    """In how many of the runs, whose names say what was acknowledged, the tab shows that."""
    with board(logdir, loader) as here:
        runs = here.json("/index")["runs"]
        for run in runs:
            assert run["last_step"] >= int(run["name"].rpartition("-")[2])
            assert run["account"]["unreadable"] == run["account"]["dropped"] == 0
            assert here.get("/overview", run=run["name"]).status_code == 200
    return len(runs)


def check(lineages: list[Recorded], kills: int) -> set[int]:
    """All steps that are there. Resumed, each lineage goes on where one before it was."""
    assert len(lineages) == kills
    assert len({log.description.origin for log in lineages}) == 1
    for log in lineages:
        steps = log.record_steps()
        assert steps == list(range(steps[0], steps[0] + len(steps)))
        assert log.record_past_steps() == [step - 1 for step in steps]
    return {step for log in lineages for step in log.record_steps()}


def same_picture(logdir: Path, killed: Path, trainings: KilledTrainings, steps: int) -> None:
    """What the tab shows is what it shows of the same training, never killed.

    That is until its records are thinned, which those of a lineage after a kill aren't yet.
    """
    same = slice(0, min(steps, 1000))
    shutil.copytree(killed, logdir / "killed")
    assert trainings.train(logdir / "whole", "", steps).code == 0
    for loader in LOADERS:
        with board(logdir, loader) as here:
            runs = {run["name"]: run for run in here.json("/index")["runs"]}
            assert set(runs) == {"killed", "whole"}
            assert len(runs["killed"]["lineages"]) == KILLS
            assert runs["killed"]["records"] == steps
            assert runs["killed"]["origin"] == runs["whole"]["origin"]
            for layer in ("dense", "dense_1"):
                _, whole = here.arrays("/layer", run="whole", layer=layer)
                header, killed = here.arrays("/layer", run="killed", layer=layer)
                assert header["account"]["unreadable"] == 0
                for name in ("steps", "past_steps", "state", "delta"):
                    np.testing.assert_array_equal(killed[name][..., same], whole[name][..., same])


@pytest.mark.prove
@pytest.mark.promise("ends")
@pytest.mark.parametrize(
    ("end", "code", "closed"),
    [
        ("", 0, True),
        ("raise", 1, False),
        ("exit", 3, False),
        ("_exit", 4, False),
        ("sigterm", -15, False),
        ("interrupt", -2, False),
        ("fork", 0, True),
        ("thread", 0, True),
    ],
)
def test_every_end_of_a_keras_training(
    tmp_path: Path, trainings: KilledTrainings, figure: Any, end: str, code: int, *, closed: bool
) -> None:
    ended = trainings.train(tmp_path / "run", "", 20, end)
    assert ended.code == code
    (log,) = read_lineages(tmp_path / "run")
    assert set(ended.acknowledged) <= set(log.record_steps())
    assert set(log.record_steps()) <= set(range(1, 21))
    assert log.last.closed == closed
    assert log.last.dropped == 0
    figure(
        f"ends by {end or 'return'}: {ended.acknowledged[-1]} of {log.record_steps()[-1]} acknowledged, 0 lost"
    )
