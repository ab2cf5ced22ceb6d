"""Progress: a bar on a terminal, and nothing anywhere else."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pytest

from tb_pastnet.cli import progress
from tb_pastnet.cli.main import main
from tb_pastnet.cli.progress import Bars
from tests.golden.kept_logs import FOLDER


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def at_once(monkeypatch):
    pytest.importorskip("tqdm", reason="bars are shown where tqdm is installed")
    monkeypatch.setattr(progress, "DELAY", 0)


def test_a_terminal_shows_a_bar_and_what_is_done(at_once):
    terminal = Terminal()
    assert list(Bars(terminal)([1, 2], "Reading \x1b[31m", 2)) == [1, 2]
    assert "Reading \\x1b[31m:   0% |" in terminal.getvalue()


def test_nothing_is_shown_before_two_seconds():
    terminal = Terminal()
    assert list(Bars(terminal)(range(9), "Reading", 9)) == list(range(9))
    assert terminal.getvalue().strip() == ""


def test_a_pipe_shows_nothing(at_once):
    pipe = io.StringIO()
    assert list(Bars(pipe)([1], "Reading", 1)) == [1]
    assert pipe.getvalue() == ""


def test_without_tqdm_there_is_no_bar(monkeypatch):
    monkeypatch.setattr(progress, "find_spec", lambda name: None)
    terminal = Terminal()
    assert list(Bars(terminal)([1], "Reading", 1)) == [1]
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
    for text in shown:
        assert f"{text}:" in terminal.getvalue()
        assert f"{text}:" not in out.getvalue()
