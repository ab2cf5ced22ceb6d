from __future__ import annotations

import json
import re
import sys

import pytest

from tools import commands, environment, matrix
from tools.columns import COLUMNS, QUICK, WITHOUT_TENSORFLOW, Column
from tools.promises import load, rows
from tools.steps import ROOT, Failure

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture
def tried(monkeypatch, tmp_path):
    """A matrix without pip and pytest: what pytest is called with, and what it answers."""
    called: list[list[str]] = []
    answers: dict[str, tuple[int, str]] = {}

    def quiet(command, env=None):
        if "pytest" in command:
            called.append([str(part) for part in command])
            return answers.get("pytest", (0, "......\n6 passed in 1.2s\n"))
        return (0, "3.12.1, tensorflow 2.19.1")

    def make(venv, python, pins, *, tensorflow):
        venv.mkdir(parents=True)
        return venv / "bin" / "python"

    monkeypatch.setattr(matrix, "HOME", tmp_path / "venvs")
    monkeypatch.setattr(matrix, "quiet", quiet)
    monkeypatch.setattr(matrix.environment, "ensure_pinned", make)
    monkeypatch.setattr(matrix, "pythons", lambda given: {"3.12": "python3.12"})
    monkeypatch.setattr(matrix, "save", lambda one: None)
    return called, answers


def test_each_promised_version_is_in_a_column():
    def starts(field, version):
        return any(getattr(column, field).startswith(version) for column in COLUMNS)

    assert {column.python for column in COLUMNS} == {"3.10", "3.11", "3.12", "3.13", "3.14"}
    for version in ("2.16", "2.19", "2.21"):
        assert starts("tensorflow", version)
    for version in ("2.16", "2.17", "2.18", "2.19", "2.20"):
        assert starts("tensorboard", version)
    assert starts("keras", "3.7.0")
    assert starts("numpy", "1.26")
    assert starts("numpy", "2.")
    for version in ("2.1.0", "2.3", "3.0"):
        assert starts("werkzeug", version)
    assert COLUMNS[-1] == Column("newest", "3.13")
    assert COLUMNS[-1].pins() == []


def test_the_oldest_column_is_what_pyproject_asks_for():
    pinned = dict(pin.split("==") for pin in COLUMNS[0].pins())
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    for name in ("numpy", "keras", "google-crc32c", "scikit-learn", "tensorflow", "werkzeug",
                 "tensorboard", "h5py"):  # fmt: skip
        (bound,) = set(re.findall(rf'"{name}>=([\d.]+)[;"]', project))
        assert pinned[name].startswith(bound), name


def test_quick_tests_are_there():
    assert [path for path in (*QUICK, *WITHOUT_TENSORFLOW) if not (ROOT / path).exists()] == []


def test_an_unknown_column_is_refused():
    text = r"Could not run 2\.15: expected columns of oldest, .*newest\. Name some of these, or no"
    with pytest.raises(Failure, match=text):
        matrix.choose(["newest", "2.15"])
    assert matrix.choose([]) == list(COLUMNS)
    assert [column.name for column in matrix.choose(["2.19"])] == ["2.19"]


def test_a_given_python_goes_first(tmp_path):
    assert matrix.pythons([str(tmp_path / "no-such-program")])[HERE]
    assert matrix.pythons([sys.executable])[HERE] == sys.executable


@pytest.mark.parametrize(
    ("output", "counts"),
    [
        ("....\n3 failed, 812 passed, 1 skipped in 61.2s (0:01:01)\n", "3 failed, 812 passed, 1 skipped"),
        ("6 passed\n1 error in 0.1s\n", "1 error"),
        ("", "no test ran"),
    ],
)  # fmt: skip
def test_the_last_line_of_pytest_is_counted(output, counts):
    assert matrix.counted(output) == counts


def test_columns_that_pass_and_that_lack_a_python(tried, capsys, tmp_path):
    called, _ = tried
    columns = [Column("a", "3.12", "2.19.1"), Column("b", "3.10")]
    first, second = matrix.run_all(columns, [], ["tests"], keep=False)
    assert (first.outcome, first.counts) == ("passed", "6 passed")
    assert (second.outcome, second.counts) == (
        "skipped",
        "no Python 3.10 found: name one with --python",
    )
    assert called[0][1:] == ["-m", "pytest", "--no-header", "-q", "tests"]
    assert list((tmp_path / "venvs").iterdir()) == []
    assert "passed  a        Python 3.12.1, tensorflow 2.19.1: 6 passed" in matrix.table([first])
    assert "skipped b: no Python 3.10 found" in capsys.readouterr().out


def test_a_column_that_fails_shows_its_output_and_stays_where_asked(tried, capsys, tmp_path):
    _, answers = tried
    answers["pytest"] = (1, "what went wrong\n1 failed in 1s\n")
    (one,) = matrix.run_all([Column("a", "3.12")], [], [], keep=True)
    assert (one.outcome, one.counts) == ("failed", "1 failed")
    assert "what went wrong" in capsys.readouterr().out
    assert (tmp_path / "venvs" / "a").is_dir()


def test_versions_that_dont_go_together_are_a_failure(tried, monkeypatch, capsys):
    def refuse(venv, python, pins, *, tensorflow):
        raise Failure("Could not install the versions of a")

    monkeypatch.setattr(environment, "ensure_pinned", refuse)
    (one,) = matrix.run_all([Column("a", "3.12")], [], [], keep=False)
    assert (one.outcome, one.counts) == ("failed", "the environment can't be made")
    assert "Could not install the versions of a" in capsys.readouterr().out


def test_what_a_column_showed_is_a_row_of_the_promises(tmp_path, monkeypatch):
    monkeypatch.setattr("tools.promises.COLUMNS", (Column("a", "3.12"), Column("b", "3.10")))
    told = "3.12.1, tensorflow 2.19.1"
    one = matrix.Outcome(Column("a", "3.12"), "passed", told, "6 passed", 1.25)
    matrix.save(one, tmp_path)
    matrix.save(matrix.Outcome(Column("b", "3.10"), "skipped", counts="no Python"), tmp_path)
    (kept,) = json.loads((tmp_path / "matrix-a.json").read_text("utf-8"))["results"]
    assert kept["test"] == "dev.py matrix a"
    (row,) = [row for row in rows(load(tmp_path)) if row.promise.name == "versions"]
    assert (row.verdict, row.tests) == ("partly", "1 of 2")
    assert row.figures == ["Python 3.12.1, tensorflow 2.19.1: 6 passed", "skipped: b: no Python"]


@pytest.mark.parametrize(
    ("argv", "tests"),
    [
        (["matrix", "2.19"], QUICK),
        (["matrix", "--whole"], ("--ignore=tests/e2e",)),
        (["matrix", "--", "-k", "name"], ("-k", "name")),
    ],
)
def test_the_command_chooses_the_tests(monkeypatch, argv, tests):
    asked = {}

    def run_all(columns, given, pytest, *, keep):
        asked.update(columns=columns, pytest=pytest)
        return [matrix.Outcome(columns[0], "failed")]

    monkeypatch.setattr(commands.matrix, "run_all", run_all)
    assert commands.main(argv) == 1
    assert tuple(asked["pytest"][: len(tests)]) == tests
    assert len(asked["columns"]) == (1 if "2.19" in argv else len(COLUMNS))


def test_the_workflow_of_the_tests_runs_each_column():
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8")
    ran = re.findall(r'- \{ column: "(.+?)", python: "(.+?)" \}', workflow)
    assert ran == [(column.name, column.python) for column in COLUMNS]
