"""The programs of the guides run as they stand."""

from __future__ import annotations

import re

import pytest

from tests.doc_pages import PAGES, program_of, programs_of
from tests.interpreter import STRICT, Interpreter
from tests.sampled import sampled
from tools.steps import ROOT

SAID = {
    "start/first_picture.md": "[0 3]\n…\n0.5 []\n",
    "start/cheat_sheet.md": " []\n",
    "how_to/recording.md": "",
    "tutorials/still_learning.md": "The last channel moves at step 1",
    "tutorials/freeze_and_verify.md": "64 {'not_recompiled'}\n()\n",
    "tutorials/target_network.md": "teacher: ",
    "tutorials/clone_subgraph.md": "The clone's kernel moved by up to 0.0",
    "migrate/tfmot.md": "{'hidden/kernel': 0.8, 'logits/kernel': 0.8}",
    "migrate/histograms.md": "",
    "migrate/graph_editor.md": "",
    "migrate/sync.md": "",
    "how_to/masks.md": "only/kernel, channel 2: 16 of 16 held weights moved at step 8",
    "tutorials/lottery_tickets.md": "36.0%",
    "how_to/past_networks.md": "after sync: 0.0",
    "how_to/fine_tuning.md": "moved in the first part: ()",
    "benchmarks/overhead.md": "252 records were due: ",
    "how_to/other_loggers.md": "records: [1, 4, 8, 12, 16] moving: 1.0",
    "tab/function_view.md": "recorded to step 16",
    "how_to/many_devices.md": "pruned: 0.5 leaks: []",
    "how_to/cloning.md": "out of sync: False\nin sync again: True",
    "how_to/numpy.md": (
        "steps: [1, 5, 10, 15, 20] channels: 3\nviolations: 3\nsklearn: ['layer_0', 'layer_1']"
    ),
    "how_to/jax.md": (
        "steps: [1, 5, 10, 15, 20]\nmoved although frozen: ['dense/kernel']\nscanned: [5, 10]"
    ),
}
ELSEWHERE = {
    "contributing/architecture.md": "tests/unit/test_docs_logs.py",
    "how_to/reading_logs.md": "tests/unit/test_docs_logs.py",
    "how_to/stores.md": "tests/unit/test_docs_logs.py",
    "how_to/keras_backends.md": "tests/unit/keras/test_variable_recorder.py",
    "how_to/tf1_graphs.md": "tests/unit/test_docs_processes.py",
    "how_to/torch.md": "tests/unit/test_docs_processes.py",
    "reference/command_line.md": "tests/unit/test_docs_command_line.py",
}
"""Pages whose Python runs in another file of tests."""
NEEDS = {"how_to/jax.md": ("jax", "optax"), "how_to/numpy.md": ("sklearn",)}


@pytest.fixture(scope="module")
def python():
    process = Interpreter(begin=STRICT)
    yield process
    process.close()


def test_the_python_of_every_page_runs_in_a_test():
    with_python = {name for name in PAGES if programs_of(name)}
    assert with_python == {*SAID, *ELSEWHERE}
    for name, tests in ELSEWHERE.items():
        assert name.rpartition("/")[2] in (ROOT / tests).read_text("utf-8")


def test_what_cannot_run_is_little():
    fences = [name for name, text in PAGES.items() for _ in re.findall(r"^```py$", text, re.M)]
    assert fences == [
        "how_to/torch.md",  # a program that torchrun starts
        "migrate/graph_editor.md",  # TensorFlow 1
        "migrate/histograms.md",  # lines out of a program
        "migrate/tfmot.md",  # Keras 2
    ]


@pytest.mark.parametrize("name", sampled(SAID, 2))
def test_a_guides_python_runs(python, name, tmp_path):
    for package in NEEDS.get(name, ()):
        pytest.importorskip(package, reason="its guide runs where it is installed")
    python.run("import os; os.chdir(folder)", folder=str(tmp_path))
    # Two epochs of a lottery, and twenty steps of a loop, show the same.
    program = program_of(name).replace(", 20)", ", 2)").replace(", 101)", ", 21)")
    said = python.run(program)
    assert all(part in said for part in SAID[name].split("…"))
