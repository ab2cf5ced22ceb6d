"""kill -9 around restarts, and stores that refuse meanwhile: what was acknowledged is there."""

from __future__ import annotations

import itertools
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tb_pastnet as pastnet
from tests.fault.trainings import Trainings

pytestmark = pytest.mark.promise("restarts")

CASES = [
    *itertools.product(
        ("keras", "torch", "jax", "numpy"), ("restart", "back", "fit"), ("disk", "slow", "refusing")
    )
]
KILLS = 1_000


@pytest.fixture(scope="module")
def trainings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trainings]:
    made = Trainings("tests.fault.restarting", tmp_path_factory.mktemp("errors") / "errors.txt")
    yield made
    made.close()


def train(trainings: Trainings, *order: Any) -> tuple[list[Any], int]:
    """What a training said, and its exit code."""
    trainings.order(*map(str, order[:4]), *order[4:])
    said = []
    while True:
        answer = trainings.answer()
        if isinstance(answer, dict) and "status" in answer:
            return said, answer["status"]
        said.append(answer)


def end(trainings: Trainings, logdir: Path, case: tuple[str, ...], seed: int) -> None:
    """A training that ends: each record that was due is in the account, and all are shown."""
    said, code = train(trainings, logdir, *case, seed, None)
    assert code == 0, trainings.errors.read_text()[-3000:]
    last = said[-1]
    run = pastnet.read(logdir).runs["."]
    account = run.account
    assert last["written"]
    assert run.steps.tolist() == last["standing"]
    assert account.offered == last["due"] == account.shown + account.superseded
    assert account.dropped == account.unreadable == account.thinned == 0


def kill(trainings: Trainings, logdir: Path, case: tuple[str, ...], seed: int) -> int:
    """A training that is killed; returns how many steps were acknowledged, all of them there."""
    said, code = train(trainings, logdir, *case, seed, 1 + seed % 6)
    assert code in (0, -signal.SIGKILL), trainings.errors.read_text()[-3000:]
    if said and isinstance(said[-1], dict):  # it ended before it was killed
        last = said.pop()
        said = [last["standing"]] if last["written"] else said
    if not said:
        return 0
    run = pastnet.read(logdir).runs["."]
    account = run.account
    assert {*said[-1]} <= {*run.steps.tolist()}
    parts = account.shown, account.superseded, account.thinned, account.dropped, account.unreadable
    assert account.offered == sum(parts)
    return len(said[-1])


def one_after_the_other(trainings: Trainings, tmp_path: Path, kills: int) -> int:
    acknowledged = 0
    for seed in range(kills):
        case = CASES[seed * 7 % len(CASES)]
        try:
            acknowledged += kill(trainings, tmp_path / str(seed), case, seed)
        except AssertionError as error:
            raise AssertionError(f"{case}, seed {seed}: {error}") from error
    return acknowledged


@pytest.mark.parametrize("case", random.Random(5).sample(CASES, 6), ids="-".join)
def test_what_was_due_is_shown_once_the_training_has_ended(
    trainings: Trainings, tmp_path: Path, case: tuple[str, ...]
) -> None:
    end(trainings, tmp_path, case, 1)


def test_some_kills(trainings: Trainings, tmp_path: Path) -> None:
    assert one_after_the_other(trainings, tmp_path, 12) > 50


@pytest.mark.prove
def test_every_way_to_end(trainings: Trainings, tmp_path: Path, figure: Any) -> None:
    for number, (case, seed) in enumerate(itertools.product(CASES, range(5))):
        end(trainings, tmp_path / str(number), case, seed)
    figure(f"{5 * len(CASES)} trainings that start again: each record due is in the account")


@pytest.mark.prove
def test_many_kills(trainings: Trainings, tmp_path: Path, figure: Any) -> None:
    acknowledged = one_after_the_other(trainings, tmp_path, KILLS)
    figure(f"{KILLS:,} kills around restarts: 0 of {acknowledged:,} acknowledged steps lost")
