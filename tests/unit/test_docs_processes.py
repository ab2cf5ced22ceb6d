"""Programs in the documentation that need processes of their own run as they stand."""

from __future__ import annotations

import pytest

from tests.devices import Workers
from tests.doc_programs import program_of, programs_of
from tests.interpreter import STRICT, Interpreter
from tests.recorded import read_one

CONFIGURE = "import os\nos.environ['TF_CONFIG'] = {config!r}\n"


@pytest.fixture
def python():
    process = Interpreter(begin=STRICT)
    yield process
    process.close()


def test_the_python_for_torch_runs(python, tmp_path):
    for name in ("torch", "lightning", "transformers"):
        pytest.importorskip(name, reason=f"{name} isn't installed")
    python.run("import os; os.chdir(folder)", folder=str(tmp_path))
    said = python.run(program_of("docs/how_to/torch.md"))
    assert "[1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100] 0/weight, channel 0: 8 of 8 held" in said
    assert "Likely cause: momentum left" in said
    assert "rows that moved all the same: {'weight_decay'}" in said
    assert "tuned: ()" in said


def test_the_python_for_tf1_graphs_runs(python, tmp_path):
    # In a process of its own: it turns off what the others need.
    python.run("import os; os.chdir(folder)", folder=str(tmp_path))
    said = python.run(program_of("docs/how_to/tf1_graphs.md"))
    assert "moved in the last step: ['hidden/kernel', 'out/kernel']" in said


def test_the_program_of_workers_runs_as_two(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = programs_of("docs/how_to/many_devices.md")[-1]
    workers = Workers(begin=CONFIGURE)
    assert workers.run(program) == ["leaks: []\n"] * 2
    workers.close()
    assert read_one(tmp_path / "runs" / "workers").record_steps() == [1, *range(10, 101, 10)]
