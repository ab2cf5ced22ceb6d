"""Whole trainings into a store that fails or is slow: they are what they are without it."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tb_pastnet.reader.local_log import LocalLog
from tests.fault.training_to_store import STEPS
from tests.fault.trainings import Trainings
from tests.gcs import Gcs, gcs
from tests.recorded import Recorded, read_one
from tests.stores import S3, Fault, s3

pytestmark = pytest.mark.promise("stores")

ROOT = Path(__file__).parents[2]
PROVE = pytest.mark.prove
CASES = [pytest.param(seed, marks=() if seed == 0 else PROVE) for seed in range(50)]
PASSING: tuple[Fault, ...] = (503, 500, 403, "reset", 0.3, 1.0, 3.0)
LASTING: tuple[Fault, ...] = (503, 403, "reset", 30.0)


class Trained(NamedTuple):
    """What came of a training: what it computed, acknowledged and complained of, its exit code."""

    computed: dict[str, Any]
    acknowledged: list[int]
    errors: str
    code: int


class TrainingsToStores(Trainings):
    """See `tests.fault.training_to_store`."""

    def __init__(self, errors: Path) -> None:
        super().__init__("tests.fault.training_to_store", errors)

    def train(self, logdir: str, exit_timeout: float = 60.0, client: str = "") -> Trained:
        begin = self.errors.stat().st_size
        self.order(logdir, exit_timeout, client)
        acknowledged, answer = [], self.answer()
        while isinstance(answer, int):
            acknowledged.append(answer)
            answer = self.answer()
        # Where it fails there is nothing that it computed.
        computed, end = ({}, answer) if "status" in answer else (answer, self.answer())
        errors = self.errors.read_bytes()[begin:].decode()
        return Trained(computed, acknowledged, errors, end["status"])


@pytest.fixture(scope="module")
def store() -> Iterator[S3]:
    with s3() as server:
        yield server


@pytest.fixture(scope="module")
def google() -> Iterator[Gcs]:
    with gcs() as server:
        yield server


@pytest.fixture(scope="module")
def trainings(
    store: S3, google: Gcs, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TrainingsToStores]:
    trainings = TrainingsToStores(tmp_path_factory.mktemp("trainings") / "stderr")
    yield trainings
    trainings.close()


@pytest.fixture(scope="module")
def unrecorded(trainings: TrainingsToStores) -> dict[str, Any]:
    return trainings.train("").computed


def stored(url: str) -> Recorded:
    log = LocalLog(url)  # its copy goes with it
    return read_one(Path(log.path))


@pytest.mark.parametrize("seed", CASES)
def test_a_store_that_recovers_costs_a_training_nothing(
    store: S3, trainings: TrainingsToStores, unrecorded: Any, seed: int, figure: Any
) -> None:
    luck, url = random.Random(seed), f"s3://bucket/recovers/{seed}"
    first = len(store.puts) + 1
    faults = {first + number: luck.choice(PASSING) for number in luck.sample(range(1, 12), 4)}
    store.fault = faults.get
    trained = trainings.train(url)
    assert trained.code == 0, trained.errors
    assert trained.computed == unrecorded
    log = stored(url)
    assert {*trained.acknowledged} <= {*log.record_steps()}
    assert log.record_steps() == [*range(1, STEPS + 1)]
    assert (log.last.closed, log.last.dropped) == (True, 0)
    figure("trainings into stores that recover: exit code 0, the same bits, 0 records lost")


@pytest.mark.parametrize("seed", CASES)
def test_a_store_that_goes_away_costs_a_training_only_records(
    store: S3, trainings: TrainingsToStores, unrecorded: Any, seed: int, figure: Any
) -> None:
    luck, url = random.Random(seed), f"s3://bucket/goes/{seed}"
    last = len(store.puts) + luck.randrange(1, 6)
    fault = LASTING[seed % len(LASTING)]
    store.fault = lambda number: fault if number > last else None
    trained = trainings.train(url, exit_timeout=1.0)
    store.fault = lambda number: None
    assert trained.code == 0, trained.errors
    assert trained.computed == unrecorded
    steps = stored(url).record_steps()
    assert {*trained.acknowledged} <= {*steps}
    (given_up,) = re.findall(r"Dropped (\d+) records", trained.errors) or ["0"]
    assert steps == [*range(1, STEPS + 1 - int(given_up))]
    figure(
        "trainings into stores that go away: exit code 0, the same bits, each lost record counted"
    )


@pytest.mark.parametrize(
    "seconds", [2.0, *(pytest.param(1 + n / 10, marks=PROVE) for n in range(12) if n != 10)]
)
def test_google_by_tensorflow_that_is_slow_at_exit_costs_a_training_only_records(
    google: Gcs, trainings: TrainingsToStores, unrecorded: Any, seconds: float, figure: Any
) -> None:
    first = len(google.puts) + 1
    google.fault = lambda number: seconds if number > first else None
    trained = trainings.train(f"gs://bucket/{seconds}", 1.0, "tensorflow")
    assert trained.code == 0, trained.errors
    assert trained.computed == unrecorded
    figure("trainings to gs:// by TensorFlow, uploads of up to 2.1 s at exit: exit code 0")
