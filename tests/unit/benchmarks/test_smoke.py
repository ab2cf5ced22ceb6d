"""Each benchmark still works at tiny sizes, and its rows are well formed. Never how fast."""

from __future__ import annotations

import importlib
import json
import math

import pytest
import tensorflow as tf

from benchmarks._rows import INTO, Row, read, tables
from tb_pastnet.core.numba_switch import SWITCH
from tools.bench import FOLDER, choose

ALL = [path.stem for path in choose(())]


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch):
    """Benchmarks choose how recorders measure, and what TensorFlow says."""
    monkeypatch.setenv(SWITCH, "1")
    level = tf.get_logger().level
    yield
    tf.get_logger().setLevel(level)


# No user reaches a benchmark, and mypy reads them all at each change.
@pytest.mark.prove
@pytest.mark.parametrize("name", ALL)
def test_it_works_and_its_rows_are_well_formed(name, tmp_path, monkeypatch):
    into = tmp_path / "rows.json"
    monkeypatch.setenv(INTO, str(into))
    assert importlib.import_module(f"benchmarks.{name}").main(["--smoke"]) in (0, 1)
    body = json.loads(into.read_text("utf-8"))
    assert body["benchmark"] == name
    assert " cores of " in body["machine"]
    assert body["versions"]["python"]
    assert body["commit"]
    rows = read(body)
    assert rows
    for row in rows:
        assert_well_formed(row)
    places = [(row.table, row.name, row.column) for row in rows]
    assert len(set(places)) == len(places)
    assert sum(line.startswith("**") for line in tables(rows)) == len({row.table for row in rows})


def assert_well_formed(row: Row) -> None:
    assert row.table
    assert row.name
    assert row.error == ""
    assert all(math.isfinite(value) for value in (row.value, row.low, row.high))
    assert row.low <= row.value <= row.high
    assert (row.met is None) == (row.bar is None)
    assert row.bar is None or row.met == (row.value <= row.bar)


def test_a_program_of_a_peer_is_no_benchmark():
    assert all(not name.startswith("_") for name in ALL)
    assert {path.stem for path in FOLDER.glob("[a-z]*.py")} == set(ALL)
