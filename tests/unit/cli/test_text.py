"""Text for a terminal, and names of files."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from tb_pastnet.cli import text
from tb_pastnet.cli.export import safe
from tb_pastnet.core.account import Account


def test_control_characters_are_written_out() -> None:
    assert text.printable("a\x1b[31m\nb\u202e") == "a\\x1b[31m\\nb\\u202e"


@pytest.mark.parametrize(("name", "columns"), [("abc", 3), ("層", 2), ("e\u0301", 1)])
def test_columns_are_those_of_the_terminal(name: str, columns: int) -> None:
    assert text.columns_of(name) == columns


def test_of_a_long_name_the_ends_are_shown() -> None:
    assert text.fit("block/conv1", 20) == "block/conv1"
    assert text.fit("block_one/conv1/kernel", 12) == "block…kernel"


def test_names_stand_to_the_left_and_numbers_to_the_right() -> None:
    lines = text.table(["layer", "pruned"], [["conv1", "7"]], 80)
    assert lines == ["layer  pruned", "conv1       7"]


def test_numbers_for_people() -> None:
    assert [text.size_of(size) for size in (999, 1234, 5_600_000)] == ["999 B", "1.2 kB", "5.6 MB"]


def test_an_account_and_an_overhead_in_words() -> None:
    assert text.account_text(asdict(Account(5, shown=4, thinned=1))) == "5 due: 4 shown, 1 thinned"
    cost = {"share": 0.008, "seconds": 1.2, "training": 150.0, "writer": 0.4}
    assert text.overhead_text(cost) == (
        "recording overhead 0.8%: 1.2 s of 150 s, plus 0.4 s CPU in the writer thread"
    )


@pytest.mark.parametrize(
    ("name", "file"),
    [("block/conv1", "block_conv1"), ("../../etc/passwd", "etc_passwd"), ("שלום", "_")],
)
def test_a_file_has_what_of_a_name_is_harmless(name: str, file: str) -> None:
    assert safe(name) == file
