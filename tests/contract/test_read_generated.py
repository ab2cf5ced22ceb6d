"""Logs that nobody thought of are read back as the routes answer them, damaged ones too."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

import tb_pastnet as pastnet
from tests.generated_logs import DAMAGED, WHOLE, Made
from tests.read_back import check
from tests.tensorboards import LOADERS, board

pytestmark = pytest.mark.promise("read_back")
FEW = settings(max_examples=3, derandomize=True, suppress_health_check=list(HealthCheck))
MANY = settings(max_examples=60, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module", autouse=True)
def imported(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What TensorBoard imports changes Python's recursion limit, which Hypothesis watches."""
    for loader in LOADERS:
        with board(tmp_path_factory.mktemp("empty"), loader):
            pass


def compare(made: Made, *loaders: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        made.write(Path(folder))
        log = pastnet.read(folder)
        count = 0
        for loader in loaders:
            with board(folder, loader) as here:
                count += check(here, log)
        return count


@FEW
@given(made=WHOLE)
def test_generated_logs_equal_the_routes(made: Made) -> None:
    assert compare(made, *LOADERS) > 0


@FEW
@given(made=DAMAGED)
def test_damaged_logs_equal_the_routes_of_the_fast_loader(made: Made) -> None:
    # The slow one gives a file up at the first wrong checksum, where ours decides for the fast one.
    compare(made, "fast")


@pytest.mark.prove
def test_many_generated_logs_equal_the_routes(figure: Callable[[str], None]) -> None:
    figure(_many(WHOLE, LOADERS, "generated logs, both loaders"))


@pytest.mark.prove
def test_many_damaged_logs_equal_the_routes(figure: Callable[[str], None]) -> None:
    figure(_many(DAMAGED, ("fast",), "damaged logs"))


def _many(made: object, loaders: tuple[str, ...], name: str) -> str:
    numbers: list[int] = []

    @MANY
    @given(made=made)
    def run(made: Made) -> None:
        numbers.append(compare(made, *loaders))

    run()
    return f"{len(numbers):,} {name}: {sum(numbers):,} numbers equal to the last bit"
