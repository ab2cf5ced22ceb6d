"""The command line shows hostile names as text, opens event files alone, and needs no TensorFlow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from tb_pastnet.cli.text import columns_of
from tests import event_files as files
from tests.commands import command
from tests.contract.test_http_api import sample_log
from tests.e2e import hostile
from tools.steps import ROOT

ESCAPES = ("\x1b[31mred", "\x1b]0;title\x07", "a\rb", "\x9b2J", "\u202egnp", "\u2028", "\x08" * 9)


def hostile_log(logdir: Path) -> None:
    hostile.hostile(logdir)
    layers = dict.fromkeys(ESCAPES, 2)
    for number, run in enumerate(ESCAPES):
        writer = files.write_run(logdir, run, range(1, 4), lineage=number + 1, layers=layers)
        data = writer.path.read_bytes()
        writer.path.write_bytes(data[:-5])


@pytest.mark.promise("hostile_names")
@pytest.mark.parametrize("name", ["check", "report", "verify"])
@pytest.mark.parametrize("width", [60, pytest.param(120, marks=pytest.mark.prove)])
def test_no_control_character_reaches_a_terminal(
    tmp_path: Path, name: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    hostile_log(tmp_path)
    asked = {"report": ["--fail-on", "violations"], "verify": ["--frozen", "\x1b[31m*"]}
    done = command(name, tmp_path, *asked.get(name, []))
    assert done.code == (2 if name == "verify" else 1)
    for text in (done.out, done.error):
        for line in text.splitlines():
            kinds = {unicodedata.category(one) for one in line}
            assert not kinds & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}, line
        assert text.count("\n") == len(text.splitlines())
    assert "\\x1b[31mred" in done.out
    if name == "report":
        rows = [line for line in done.out.splitlines() if line[:1] == " " and line.endswith("%")]
        assert rows
        assert {columns_of(line) for line in rows} <= set(range(width + 1))


def test_a_name_that_isnt_there_is_printable_too(tmp_path: Path) -> None:
    files.write_run(tmp_path)
    done = command("report", tmp_path, "--run", "\x1b[31m")
    assert done.code == 2
    assert "\x1b" not in done.error


SCRIPT = """
import json, os, sys
sys.modules["tensorflow"] = sys.modules["keras"] = None
opened, written = [], []

def hook(event, arguments):
    if event in {"open", "os.mkdir", "os.rename", "os.rmdir"}:
        name, mode = arguments[0], (arguments[1] if event == "open" else "w")
        if isinstance(name, (str, bytes, os.PathLike)):
            flags = (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR) if event == "open" else 1
            (written if flags else opened).append(os.path.abspath(os.fsdecode(name)))

from tests.commands import command
import tb_pastnet.cli.check, tb_pastnet.cli.report, tb_pastnet.cli.export
log, out = sys.argv[1:]
tables = "runs,layers,violations,function,channels"
from pathlib import Path
from tests.contract.test_http_api import sample_log
sample_log(Path(out + ".plain"))
command("export", out + ".plain", out + ".first", "--tables", tables)
sys.addaudithook(hook)
codes = [command("check", log).code, command("report", log).code,
         command("export", log, out, "--tables", "layers,channels").code]
print("said:" + json.dumps([codes, opened, written]))
"""


@pytest.mark.promise("hostile_names")
def test_no_name_in_a_log_opens_a_file(tmp_path: Path, figure: Callable[..., None]) -> None:
    log, out = tmp_path / "log", tmp_path / "out"
    hostile_log(log)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(log), str(out)],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    [said] = [line for line in done.stdout.splitlines() if line.startswith("said:")] or [None]
    assert said is not None, done.stderr
    codes, opened, written = json.loads(said.removeprefix("said:"))
    assert codes == [1, 0, 0]
    assert opened
    assert {path for path in opened if log not in Path(path).parents} == set()
    assert {path for path in opened if "tfevents" not in Path(path).name} == set()
    assert len(written) > 100
    below = [path for path in written if Path(path).parent == tmp_path]
    assert {Path(path).name.partition("-")[0] for path in below} <= {".pastnet", "out"}
    assert [path for path in written if tmp_path not in Path(path).parents] == []
    assert [path for path in written if log in Path(path).parents] == []
    figure(
        f"check, report and export of a log of names of files: {len(opened)} files opened, all "
        f"event files; {len(written)} made, all below the directory that was given"
    )


def test_it_is_a_program_that_needs_no_tensorflow(
    tmp_path: Path, figure: Callable[..., None]
) -> None:
    sample_log(tmp_path)
    block = "import sys, runpy; sys.modules['tensorflow'] = sys.modules['keras'] = None; "
    start = f"sys.argv[0] = 'x'; {block}runpy.run_module('tb_pastnet', run_name='__main__')"
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {start}", "report", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    took = time.monotonic() - began
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == command("report", tmp_path).out
    assert "\x1b" not in done.stdout
    figure(f"`python -m tb_pastnet report` of two small runs took {took:.1f} s", met=took < 5)


@pytest.mark.parametrize("name", ["check", "report"])
def test_a_reader_that_has_enough_is_no_error(tmp_path: Path, name: str) -> None:
    sample_log(tmp_path)
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "tb_pastnet", name, str(tmp_path)],
        cwd=ROOT, stdout=writing, stderr=subprocess.PIPE, timeout=120, check=False,
    )  # fmt: skip
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")  # as a shell says of SIGPIPE


def test_a_terminal_without_unicode_shows_numbers_of_signs(tmp_path: Path) -> None:
    hostile.hostile(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "tb_pastnet", "report", str(tmp_path)],
        cwd=ROOT, capture_output=True, timeout=120, check=False,
        env={"PYTHONIOENCODING": "ascii", "PATH": "/usr/bin"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["check"], "the following arguments are required: LOGDIR"),
        (["report", "x", "--fail-on", "moved"], "expected some of violations, contradictions, "),
        (["report", "x", "--threshold", "-1"], "expected a number from 0 on, got '-1'"),
        (["report", "x", "--threshold", "nan"], "expected a number from 0 on, got 'nan'"),
        (["export", "x", "y", "--tables", "all"], "expected some of runs, layers"),
        (["export", "x", "y", "--format", "xls"], "invalid choice: 'xls'"),
    ],
)
def test_what_is_wrong_with_a_command_is_said(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command(*arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
