"""The command itself: its name, version, help, and what it says of a misspelt command."""

from __future__ import annotations

import errno
import io
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import tb_pastnet
from tb_pastnet import __main__ as program
from tb_pastnet.cli.main import COMMANDS, main
from tests.commands import command
from tests.event_files import write_run
from tools.steps import ROOT


def test_the_script_is_the_module(monkeypatch):
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    [(module, function)] = re.findall(r'^pastnet = "([\w.]+):(run)"$', project, re.M)
    monkeypatch.setattr(program, "main", lambda arguments, out, error: arguments)
    monkeypatch.setattr("sys.argv", ["pastnet", "check", "runs"])
    assert getattr(import_module(module), function)() == ["check", "runs"]


def test_it_says_its_version(capsys):
    with pytest.raises(SystemExit, match=r"^0$"):
        command("--version")
    assert capsys.readouterr().out == f"tb-pastnet {tb_pastnet.__version__}\n"


def test_help_has_a_line_for_each_command(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit, match=r"^0$"):
        command("--help")
    shown = capsys.readouterr().out
    assert re.findall(r"^    ([a-z]+)  +\w", shown, re.M) == list(COMMANDS)
    listed = shown.partition("COMMAND\n")[2].partition("\n\n")[0]
    assert len(listed.splitlines()) == len(COMMANDS)


@pytest.mark.parametrize(
    ("wrong", "mend"),
    [
        ("chek", "Did you mean check?"),
        ("exprot", "Did you mean export?"),
        ("zzz\x1b", "See pastnet --help."),
    ],
)
def test_a_misspelt_command_is_answered_with_the_nearest(wrong, mend, capsys):
    with pytest.raises(SystemExit, match=r"^2$"):
        main([wrong, "runs"], None, None)  # type: ignore[arg-type]
    said = capsys.readouterr().err
    assert "expected one of check, report, verify, export, demo, got no such command" in said
    assert said.endswith(f"{mend}\n")
    assert "\x1b" not in said


def test_only_options_of_the_command_are_suggested(capsys):
    with pytest.raises(SystemExit, match=r"^2$"):
        command("check", "runs", "--table", "runs")
    assert "Write --" not in capsys.readouterr().err
    with pytest.raises(SystemExit, match=r"^2$"):
        command("export", "runs", "out", "--tabels", "runs")
    assert "Write --tables" in capsys.readouterr().err


def test_a_full_disk_is_a_sentence(tmp_path):
    if not Path("/dev/full").exists():
        pytest.skip("only Linux has a device that is always full")
    write_run(tmp_path, steps=range(1, 3))
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tb_pastnet", "report", str(tmp_path)],
            cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    said = "Could not print the result: expected a place for it, got No space left on device."
    assert (done.returncode, done.stderr) == (2, f"{said} Make room, or print elsewhere.\n")


class Full(io.StringIO):
    """A place for a result that has no room, and is no file."""

    def write(self, text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_place_that_is_no_file_is_the_same_sentence(tmp_path):
    write_run(tmp_path, steps=range(1, 3))
    error = io.StringIO()
    assert main(["report", str(tmp_path)], Full(), error) == 2
    assert "No space left on device. Make room, or print elsewhere." in error.getvalue()
