"""Each room passes the suite, or the table has the reason; the docs show the table."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest

from tests.conformance.exceptions import ENFORCED, EXCEPTIONS
from tests.conformance.rooms import ADAPTORS
from tests.conformance.table import BEHAVIOURS, PAGE, page

FOLDER = Path(__file__).parent / "adaptors"
ALL = [*chain.from_iterable(BEHAVIOURS.values())]


def test_the_page_shows_the_table() -> None:
    assert PAGE.read_text("utf-8") == page()


def test_exceptions_are_of_behaviours_and_rooms() -> None:
    assert {name for name, _ in EXCEPTIONS} <= {*ALL}
    assert {room for _, room in EXCEPTIONS} <= {*ADAPTORS}
    assert len({*ALL}) == len(ALL) >= 40


@pytest.mark.parametrize("module", sorted({module for module, _ in ADAPTORS.values()}))
def test_an_adaptor_is_short(module: str) -> None:
    most = 60 if module == "own_source" else 150
    assert len((FOLDER / f"{module}.py").read_text("utf-8").splitlines()) <= most


def test_a_source_of_one_s_own_lacks_nothing_but_groups_a_count_and_what_holds() -> None:
    missing = {name for name, room in EXCEPTIONS if room == "a source of one's own"}
    count = "a_call_without_a_step_counts_updates"
    assert missing - {*ENFORCED.split()} == {"a_weight_has_the_rate_of_its_group", count}
