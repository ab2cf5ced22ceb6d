"""What is exported reads back as what `pastnet.read` gives, in every format."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tb_pastnet as pastnet
from tests import event_files as files
from tests.commands import command
from tests.contract.test_http_api import sample_log
from tests.e2e import hostile

FORMATS = ("csv", "npz", "parquet")
ALL = "runs,layers,violations,function,channels"
Columns = dict[str, list[Any]]


def from_csv(path: Path, entry: dict[str, Any]) -> Columns:
    text = path.read_text("utf-8", "strict").replace("\0", "␀")  # Python 3.10 stops at NUL
    head, *rows = csv.reader(text.splitlines(keepends=True))
    return {name: [row[at].replace("␀", "\0") for row in rows] for at, name in enumerate(head)}


def from_npz(path: Path, entry: dict[str, Any]) -> Columns:
    with np.load(path, allow_pickle=False) as arrays:
        found = {name: arrays[name].tolist() for name in arrays.files}
    for name, names in entry["labels"].items():
        found[name] = [names[code] for code in found[name]]
    return found


def from_parquet(path: Path, entry: dict[str, Any]) -> Columns:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow isn't installed")
    found: Columns = parquet.read_table(path).to_pydict()
    return found


READ: dict[str, Callable[[Path, dict[str, Any]], Columns]] = {
    "csv": from_csv,
    "npz": from_npz,
    "parquet": from_parquet,
}


def exported(logdir: Path, out: Path, form: str, *more: str) -> dict[tuple[str, ...], Columns]:
    """What was exported, by kind, run and variable."""
    if form == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow isn't installed: an extra of its own")
    done = command("export", logdir, out, "--format", form, *more)
    assert (done.code, done.error) == (0, "")
    manifest = json.loads((out / "manifest.json").read_text("ascii"))
    assert manifest["format"] == form
    found = {}
    for entry in manifest["tables"]:
        columns = READ[form](out / entry["file"], entry)
        assert list(columns) == entry["columns"]
        assert {len(column) for column in columns.values()} == {entry["rows"]}
        found[entry["table"], entry["run"], entry["variable"]] = columns
    written = {str(p.relative_to(out).as_posix()) for p in out.rglob("*") if p.is_file()}
    assert written == {"manifest.json", *(entry["file"] for entry in manifest["tables"])}
    return found


def same(found: list[Any], expected: Any, form: str) -> bool:
    """Whether a column is what was read: bit for bit where it is numbers."""
    expected = np.asarray(expected)
    if form == "csv" and expected.dtype.kind in "fib":
        found = [float(cell) if cell else np.nan for cell in found]
    if expected.dtype.kind == "U" or expected.dtype.kind == "O":
        guarded = ["'" + x if x.startswith(("=", "+", "-", "@", "\t", "\r")) else x for x in expected.tolist()]  # fmt: skip
        return found == (guarded if form == "csv" else expected.tolist())
    return np.array_equal(np.asarray(found, expected.dtype), expected, equal_nan=expected.dtype.kind == "f")  # fmt: skip


def by_fingerprint(logdir: Path) -> None:
    """A violation of which nobody knows how many elements it has, or how far they moved."""
    weight = np.ones((9, 65), np.float32)
    options: dict[str, Any] = {"trainable": {"dense/kernel": False}, "audit": "fingerprints"}
    with pastnet.numpy.Recorder(logdir, {"dense/kernel": lambda: weight}, **options) as recorder:
        recorder.record(1)
        weight[3, 64] = 2
        recorder.record(2)


@pytest.mark.parametrize(
    ("log", "form"),
    [
        *((log, form) for log in (sample_log, by_fingerprint) for form in FORMATS),
        (hostile.hostile, "csv"),
        *(pytest.param(hostile.hostile, form, marks=pytest.mark.prove) for form in FORMATS[1:]),
    ],
)
def test_what_is_exported_is_what_is_read(tmp_path: Path, form: str, log: Any) -> None:
    logdir = tmp_path / "log"
    log(logdir)
    tables = exported(logdir, tmp_path / "out", form, "--tables", ALL)
    read = pastnet.read(logdir)
    assert same(tables["runs", None, None]["run"], list(read.runs), form)
    for name, run in read.runs.items():
        overview = run.overview()
        found = tables["layers", name, None]
        assert same(found["step"], np.repeat(overview.steps, len(overview.layers)), form)
        assert same(found["layer"], list(overview.layers) * len(overview.steps), form)
        for column in ("moving", "frozen", "pruned", "violated", "mean_delta", "pruned_weights"):
            assert same(found[column], getattr(overview, column).ravel(), form), column
        found = tables["violations", name, None]
        for column in ("layer", "variable", "channel", "first_step", "held", "cause"):
            assert same(found[column], [getattr(one, column) for one in run.violations], form)
        for column in ("elements", "largest"):
            values = np.array([getattr(one, column) for one in run.violations], np.float64)
            assert same(found[column], values, form)
        if run.function.places:
            found = tables["function", name, None]
            assert same(found["relative"], run.function.relative.ravel(), form)
            names = [place.name for place in run.function.places] * len(run.function.steps)
            assert same(found["place"], names, form)
        for id_, variable in run.variables.items():
            found = tables["channels", name, id_]
            assert same(found["state"], variable.states().ravel(), form)
            channels = np.tile(np.arange(variable.channels), len(variable.steps))
            assert same(found["channel"], channels, form)
            for column in ("relative_delta", "norm", "delta_max", "nonfinite", "kept", "violated"):
                assert same(found[column], getattr(variable, column).ravel(), form), column


def test_numbers_of_a_csv_are_exact(tmp_path: Path) -> None:
    from tb_pastnet.cli.export import write_csv

    double = [0.1, 1e-10, 1e20, 5e-324, -0.0, 1 / 3, 20.0, np.inf, np.nan]
    single = np.array(double, np.float32)
    write_csv(tmp_path / "x.csv", {"d": np.array(double), "s": single})
    found = from_csv(tmp_path / "x.csv", {})
    assert same(found["d"], double, "csv")
    assert same(found["s"], single, "csv")
    assert found["s"][0] == "0.1"
    assert found["d"][-1] == ""
    back = [float(cell or "nan") for cell in found["d"]]
    assert np.signbit(back).tolist() == np.signbit(double).tolist()


def test_the_columns_are_those_of_a_dataframe(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas isn't installed: an extra of its own")
    sample_log(tmp_path / "log")
    tables = exported(tmp_path / "log", tmp_path / "out", "npz", "--tables", ALL)
    run = pastnet.read(tmp_path / "log").runs["dense"]
    for found, frame in [
        (tables["layers", "dense", None], run.to_dataframe()),
        (tables["function", "dense", None], run.function.to_dataframe()),
        (tables["channels", "dense", "conv1/kernel"], run.layers["conv1"].to_dataframe()),
    ]:
        assert list(found) == list(frame.columns)
        for name in frame.columns:
            column = frame[name].astype(str) if frame[name].dtype == "category" else frame[name]
            pandas.testing.assert_series_equal(
                pandas.Series(found[name], dtype=column.dtype, name=name), column
            )


@pytest.mark.promise("hostile_names")
def test_no_name_of_the_log_is_a_path(tmp_path: Path) -> None:
    hostile.hostile(tmp_path / "log")
    exported(tmp_path / "log", tmp_path / "out", "csv", "--tables", "layers")
    tables = "--tables", "channels"
    exported(tmp_path / "log", tmp_path / "more", "csv", *tables, "--run", "__proto__")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log", "more", "out"]
    paths = [*(tmp_path / "out").rglob("*"), *(tmp_path / "more").rglob("*")]
    assert len(paths) > 2 * (len(hostile.RUNS) + len(hostile.LAYERS))
    for path in paths:
        assert path.name.replace(".", "").replace("-", "").replace("_", "").isalnum()
        assert path.name.isascii()
        assert len(path.name) <= 60
        assert not path.is_symlink()


def test_some_runs_layers_and_tables_can_be_chosen(tmp_path: Path) -> None:
    files.write_run(tmp_path / "log", "a")
    files.write_run(tmp_path / "log", "b", lineage=2)
    tables = exported(
        tmp_path / "log", tmp_path / "out", "csv", "--run", "b",
        "--tables", "channels", "--layer", "conv2",
    )  # fmt: skip
    assert list(tables) == [
        ("channels", "b", "block/conv2/kernel"),
        ("channels", "b", "block/conv2/bias"),
    ]
    default = exported(tmp_path / "log", tmp_path / "more", "csv")
    assert {kind for kind, _, _ in default} == {"runs", "layers", "violations"}


def test_it_appears_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write_run(tmp_path / "log")
    for fails_at in range(1, 4):
        calls = iter(range(1, 100))

        def write(path: Path, columns: object, at: int = fails_at, calls: Any = calls) -> None:
            path.write_text("x")
            if next(calls) == at:
                raise OSError(28, "No space left on device")

        monkeypatch.setattr("tb_pastnet.cli.export.write_csv", write)
        done = command("export", tmp_path / "log", tmp_path / "out")
        assert done.code == 2
        assert "expected a directory that can be written, got No space left on device" in done.error
        assert [p.name for p in tmp_path.iterdir()] == ["log"]


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    files.write_run(tmp_path / "log")
    out = tmp_path / "out"
    out.mkdir()
    assert command("export", tmp_path / "log", out).code == 0
    before = {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}
    done = command("export", tmp_path / "log", out)
    assert done.code == 2
    assert "expected a new or an empty directory, got one that isn't empty" in done.error
    assert {p: p.read_bytes() for p in out.rglob("*") if p.is_file()} == before
    blocked = command("export", tmp_path / "log", tmp_path / "log" / "a" / "x" / "y", "--run", "z")
    assert (blocked.code, (tmp_path / "log" / "a" / "x").exists()) == (2, False)


def test_parquet_without_pyarrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    done = command("export", tmp_path, tmp_path / "out", "--format", "parquet")
    assert (done.code, (tmp_path / "out").exists()) == (2, False)
    assert 'Run: pip install "tb-pastnet[parquet]", or export csv or npz.' in done.error


def test_a_layer_that_only_one_run_has_is_exported_of_that_run(tmp_path: Path) -> None:
    files.write_run(tmp_path / "log", "a")
    files.write_run(tmp_path / "log", "b", lineage=2, layers={"head": 2})
    chosen = ("--tables", "channels", "--layer", "head")
    tables = exported(tmp_path / "log", tmp_path / "out", "csv", *chosen)
    assert {run for _, run, _ in tables} == {"b"}
    done = command("export", tmp_path / "log", tmp_path / "no", *chosen[:2], "--layer", "nothing")
    assert (done.code, (tmp_path / "no").exists()) == (2, False)
    assert "Could not find layer 'nothing'" in done.error


@pytest.mark.parametrize(
    ("arguments", "mend"),
    [
        (["--layer", "head"], "--layer chooses tables of channels: write --tables channels"),
        (["--format", "html", "--layer", "head"], "leave out --tables and --layer"),
        (["--format", "html", "--tables", "runs"], "leave out --tables and --layer"),
    ],
)
def test_an_option_without_effect_is_refused(
    arguments: list[str], mend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command("export", tmp_path, tmp_path / "out", *arguments)
    assert ended.value.code == 2
    assert mend in capsys.readouterr().err


@pytest.mark.parametrize("form", ["csv", "html"])
def test_a_store_is_no_place_for_an_export(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files.write_run(tmp_path / "log")
    done = command("export", "log", "s3://bucket/out", "--format", form)
    assert (done.code, [path.name for path in tmp_path.iterdir()]) == (2, ["log"])
    assert "expected a path of this machine, got one in a store" in done.error
    assert command("export", "log", f"file://{tmp_path}/out", "--format", form).code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "out"]


@pytest.mark.parametrize("out", [".", "link"])
def test_a_directory_that_is_there_stays_the_same(
    out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write_run(tmp_path / "log")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "link").symlink_to("here")
    inode = (tmp_path / "here").stat().st_ino
    target = Path() if out == "." else tmp_path / out
    exported(tmp_path / "log", target, "csv")
    assert (tmp_path / "here").stat().st_ino == inode
    assert (tmp_path / "here" / "manifest.json").exists()
