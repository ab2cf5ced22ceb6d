"""The page shows the numbers that NumPy counts in the weights, at every width."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.browser import clean
from tests.oracle.cases import WIDTHS, cases_of
from tests.oracle.shown import Log, asked, check, shown

pytestmark = pytest.mark.usefixtures("browser")
AT_ONCE = 5


def look(log: Log, seed: int, count: int, widths: tuple[int, ...]) -> int:
    """Compares some places of a log at some widths."""
    trainings = [oracle.training for oracle in log.oracles.values()]
    cases, numbers = cases_of(seed, trainings, count), 0
    for at in range(0, len(cases), AT_ONCE):
        some = cases[at : at + AT_ONCE]
        given = [asked(log, case) for case in some]
        for found in clean(log.tab.drive("oracleNumbers", widths=widths, cases=given)):
            for case, one in zip(some, found, strict=True):
                numbers += check(log, case, one)
    return numbers


def test_the_page_shows_what_the_weights_say(tmp_path: Path) -> None:
    with shown(2, tmp_path) as log:
        assert look(log, 2, 1, WIDTHS[::2]) > 0


@pytest.mark.prove
@pytest.mark.parametrize("first", [0, 5, 10])
def test_many_places_show_what_the_weights_say(
    first: int, tmp_path: Path, figure: Callable[[str], None]
) -> None:
    numbers = 0
    for seed in range(first, first + 5):
        with shown(seed, tmp_path) as log:
            numbers += look(log, seed, 7, WIDTHS)
    figure(f"35 places at 6 widths: {numbers:,} numbers as NumPy counts them in the weights")
