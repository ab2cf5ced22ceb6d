"""What the guide of the command line shows is what the commands say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import tb_pastnet as pastnet
from tests import event_files as files
from tests.commands import command
from tests.contract.test_http_api import sample_log
from tools.steps import ROOT

GUIDE = (ROOT / "docs/reference/command_line.md").read_text("utf-8")
SHOWN = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
CALL = "pastnet "


def logs(folder: Path) -> None:
    """The logs of the guide: two runs in `runs`, and one in `damaged` that was restarted."""
    sample_log(folder / "runs")
    layers = {"conv1": 4, "block/conv2": 6}
    first = files.write_run(folder / "damaged", "a", range(1, 81), layers=layers)
    files.write_run(folder / "damaged", "a", range(50, 121), ordinal=2, lineage=77, layers=layers)
    data = bytearray(first.path.read_bytes())
    data[data.index(b"channels/block/conv2/bias") + 80] ^= 4
    first.path.write_bytes(data[:-9])
    tuned(folder / "tuned")


def tuned(logdir: Path) -> None:
    """A run with a frozen base, and a head that trains."""
    shapes = {"base/kernel": (4, 4), "base/bias": (4,), "head/kernel": (4, 2)}
    values = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    weights = {name: (lambda name=name: values[name]) for name in values}
    held = {"base/*": False}
    with pastnet.numpy.Recorder(logdir, weights, every=1, trainable=held) as recorder:
        for step in range(1, 41):
            values["head/kernel"] += 0.1
            recorder.record(step)


def told() -> list[tuple[str, str]]:
    """Each command of the guide and what is shown below it."""
    parts = [
        part for block in SHOWN.findall(GUIDE) for part in re.split(r"^\$ ", block, flags=re.M)
    ]
    return [tuple(part.split("\n", 1)) for part in parts if part]  # type: ignore[misc]


def test_every_command_says_what_is_shown(tmp_path, monkeypatch):
    logs(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    done, calls = None, set()
    for call, shown in told():
        if call == "echo $?":
            assert shown == f"{done.code}\n"
            continue
        assert call.startswith(CALL)
        done = command(*shlex.split(call.removeprefix(CALL)))
        calls.add(shlex.split(call)[1])
        assert done.out + done.error == shown, call
    assert calls == {"check", "report", "verify", "export"}


def test_it_names_every_option_and_word():
    from tb_pastnet.cli import main

    for word in (*main.FAILURES, *main.TABLES, *main.FORMATS):
        assert f"`{word}`" in GUIDE
    for kind in ("damaged", "foreign", "version", "frame", "torn", "rest", "unopened"):
        assert f"`{kind}`" in GUIDE


def test_its_options_are_those_of_help(capsys):
    from tb_pastnet.cli import main

    for name in main.COMMANDS:
        with pytest.raises(SystemExit):
            command(name, "--help")
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--help"}
    assert options == set(re.findall(r"`(--[a-z-]+)[` ]", GUIDE))


def test_the_program_reads_the_numbers(tmp_path, monkeypatch, capsys):
    logs(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert command("export", "runs", "tables", "--format", "npz", "--tables", "layers").code == 0
    [program] = PROGRAM.findall(GUIDE)
    exec(compile(program, "command_line.md", "exec"), {})
    assert np.isfinite(float(capsys.readouterr().out.split()[-1]))


def test_the_commands_of_other_pages_are_commands(tmp_path, monkeypatch):
    logs(tmp_path)
    monkeypatch.chdir(tmp_path)
    pages = [ROOT / "README.md", *(ROOT / "docs" / "start").glob("*.md")]
    pages += (ROOT / "docs" / "tutorials").glob("*.md")
    texts = [page.read_text("utf-8") for page in pages]
    calls = {call for text in texts for call in re.findall(rf"^{CALL}([^#\n]+)", text, re.M)}
    calls.remove("--version")  # argparse ends the process
    calls = {call for call in calls if not call.startswith("demo")}  # it starts TensorBoard
    assert len(calls) >= 3
    for number, call in enumerate(sorted(calls)):
        here = call.replace(" out", f" out{number}").replace("parquet", "csv")  # needs pyarrow
        # 1: the log has violations, 2: it is another one than the page's.
        assert command(*shlex.split(here)).code in {0, 1, 2 * call.startswith("verify")}, call
