"""Text for a terminal, bars that show progress there and nowhere else, and names of files."""

from __future__ import annotations

import io
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest

from tb_pastnet.cli import text
from tb_pastnet.cli.export import safe
from tb_pastnet.cli.main import main
from tb_pastnet.core.account import Account
from tests.golden.kept_logs import FOLDER


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
    cost = {"share": 0.008, "seconds": 1.2, "training": 150.0, "writer": 0.4, "memory": 0}
    assert text.overhead_text(cost) == (
        "recording overhead 0.8%: 1.2 s of 150 s, plus 0.4 s CPU in the writer thread"
    )
    assert text.overhead_text(cost | {"memory": 64_000_000}).endswith(", 64 MB of memory")


@pytest.mark.parametrize(
    ("name", "file"),
    [("block/conv1", "block_conv1"), ("../../etc/passwd", "etc_passwd"), ("שלום", "_")],
)
def test_a_file_has_what_of_a_name_is_harmless(name: str, file: str) -> None:
    assert safe(name) == file


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def at_once(monkeypatch):
    pytest.importorskip("tqdm", reason="bars are shown where tqdm is installed")
    monkeypatch.setattr(text, "DELAY", 0)


def test_a_terminal_shows_a_bar_and_what_is_done(at_once):
    terminal = Terminal()
    assert list(text.Bars(terminal)([1, 2], "Reading \x1b[31m", 2)) == [1, 2]
    assert "Reading \\x1b[31m:   0% |" in terminal.getvalue()


def test_nothing_is_shown_before_two_seconds():
    terminal = Terminal()
    assert list(text.Bars(terminal)(range(9), "Reading", 9)) == list(range(9))
    assert terminal.getvalue().strip() == ""


def test_a_pipe_shows_nothing(at_once):
    pipe = io.StringIO()
    assert list(text.Bars(pipe)([1], "Reading", 1)) == [1]
    assert pipe.getvalue() == ""


def test_without_tqdm_there_is_no_bar(monkeypatch):
    monkeypatch.setattr(text, "find_spec", lambda name: None)
    terminal = Terminal()
    assert list(text.Bars(terminal)([1], "Reading", 1)) == [1]
    assert terminal.getvalue() == ""


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["check"], ["Checking files"]),
        (["report"], ["Reading dense", "Reading ticket"]),
        (["export", "--tables", "channels"], ["Writing dense", "Writing ticket"]),
        (["export", "--format", "html"], ["Writing"]),
    ],
)
def test_each_command_shows_what_takes_long(arguments, shown, at_once, tmp_path: Path):
    log = shutil.copytree(FOLDER / "sample", tmp_path / "log")
    name, *options = arguments
    targets = [str(tmp_path / "out")] if name == "export" else []
    out, terminal = io.StringIO(), Terminal()
    main([name, str(log), *targets, *options], out, terminal)
    for work in shown:
        assert f"{work}:" in terminal.getvalue()
        assert f"{work}:" not in out.getvalue()
