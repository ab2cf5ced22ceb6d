"""Opening a log: what is there, what isn't, and what it needs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tb_pastnet as pastnet
from tb_pastnet.errors import UnknownName, UnreadableLog
from tests import event_files as files

ROOT = Path(pastnet.__file__).parent.parent


def test_runs_are_found_by_name_and_by_its_end(tmp_path: Path) -> None:
    for number, run in enumerate(("b/dense", "a", "b/ticket")):
        files.write_run(tmp_path, run, steps=range(1, 4), lineage=number)
    log = pastnet.read(str(tmp_path))
    assert list(log.runs) == ["a", "b/dense", "b/ticket"]
    assert log.runs["ticket"].name == "b/ticket"
    assert (log.logdir, log.warnings) == (str(tmp_path), ())
    with pytest.raises(
        UnknownName,
        match="Could not find run 'c': expected one of .*Use a run's path below the log",
    ):
        log.runs["c"]
    assert (list(log), len(log)) == (list(log.runs), 3)
    assert log["ticket"] is log.runs["b/ticket"]
    assert ("a" in log, "ticket" in log) == (True, False)
    assert [run.name for run in log.values()] == list(log)
    assert log._ipython_key_completions_() == list(log)
    with pytest.raises(UnknownName, match="Could not find run 'tickett': expected one of b/ticket"):
        log["tickett"]
    assert repr(log).splitlines() == [
        f"Log({str(tmp_path)!r}, 3 runs)",
        "  Run('a', 3 records, steps 1 to 3, 2 layers)",
        "  Run('b/dense', 3 records, steps 1 to 3, 2 layers)",
        "  Run('b/ticket', 3 records, steps 1 to 3, 2 layers)",
    ]


def test_a_run_gives_its_layers_by_name(tmp_path: Path) -> None:
    files.write_run(tmp_path, layers={"block/conv1": 4, "head": 2}, steps=range(1, 4))
    run = pastnet.read(tmp_path)["a"]
    assert run["conv1"] is run.layers["block/conv1"]
    assert list(run) == run._ipython_key_completions_() == ["block/conv1", "head"]
    assert ("head" in run, "conv1" in run) == (True, False)
    with pytest.raises(UnknownName, match="Could not find layer 'haed': expected one of head"):
        run["haed"]


def test_it_is_as_it_was_when_it_was_opened(tmp_path: Path) -> None:
    writer = files.LineageWriter(tmp_path)
    writer.describe(0)
    writer.records(range(1, 17))
    log = pastnet.read(tmp_path)
    writer.records(range(17, 33))
    run = log.runs["a"]
    assert len(run.steps) == len(run.layers["conv1"].steps) == run.account.shown == 16
    assert len(pastnet.read(tmp_path).runs["a"].steps) == 32


def test_what_was_deleted_since_is_an_error_that_says_so(tmp_path: Path) -> None:
    files.write_run(tmp_path)
    run = pastnet.read(tmp_path).runs["a"]
    shutil.rmtree(tmp_path / "a")
    assert len(run.steps) == 40
    with pytest.raises(
        UnreadableLog, match=r"expected the file that was found .* Open the log again"
    ):
        run.layers["conv1"].norm  # noqa: B018


def test_what_was_read_once_is_kept(tmp_path: Path) -> None:
    files.write_run(tmp_path)
    layer = pastnet.read(tmp_path).runs["a"].layers["conv1"]
    norm = layer.norm
    shutil.rmtree(tmp_path / "a")
    assert (layer.norm == norm).all()


def test_an_empty_directory_has_no_runs_and_what_is_none_is_refused(tmp_path: Path) -> None:
    log = pastnet.read(tmp_path)
    first, where = repr(log).splitlines()
    assert (len(log.runs), first) == (0, f"Log({str(tmp_path)!r}, 0 runs)")
    assert where == "  no run: give the directory that training wrote to, or one above it"
    with pytest.raises(UnknownName, match="'a': expected a log with runs, got none. Pass the dir"):
        log["a"]
    with pytest.raises(UnreadableLog, match="expected a directory, got No such file or directory"):
        pastnet.read(tmp_path / "nothing")
    with pytest.raises(OSError, match="Pass the directory that training wrote to, or one above it"):
        pastnet.read(tmp_path / "nothing")


def test_what_concerns_no_single_run_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = files.write_run(tmp_path)
    inside = pastnet.read(writer.directory)
    assert "Start it one directory above to see this run" in inside.warnings[0]
    assert repr(inside).splitlines()[1].startswith("  warning: TensorBoard was started inside")
    files.write_run(tmp_path, "b", lineage=2)
    files.forbid(tmp_path / "b", monkeypatch)
    log = pastnet.read(tmp_path)
    assert (list(log.runs), log.warnings) == (
        ["a"],
        ("Files and directories that can't be opened: 1",),
    )


def test_it_needs_neither_tensorflow_nor_pandas(tmp_path: Path) -> None:
    files.write_run(tmp_path)
    program = (
        "import sys\n"
        "for name in ('tensorflow', 'keras', 'pandas', 'pyarrow'): sys.modules[name] = None\n"
        "import tb_pastnet as pastnet\n"
        f"run = pastnet.read({str(tmp_path)!r}).runs['a']\n"
        "print(run.layers['conv1'].norm.shape, run.overview().moving.sum(), run.sparsity[-1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, text=True, capture_output=True, check=False
    )
    assert (done.stdout, done.stderr) == ("(40, 4) 400 0.0\n", "")


@pytest.mark.parametrize(
    ("url", "end"),
    [
        ("s4://b/a", r"got 'no driver for s4://'\. Use one of s3://, .*, or another of fsspec\."),
        ("s3://b/a?x=1", r"got 'a URL with a query'\. Leave the query out: set a driver's .*"),
        ("memory://nothing", r"got 'no event file there'\. Pass the directory that training .*"),
    ],
)
def test_a_store_that_cannot_be_read_says_how_to_mend_that(url: str, end: str) -> None:
    with pytest.raises(UnreadableLog, match=f"Could not read the log '.*, {end}$"):
        pastnet.read(url)
