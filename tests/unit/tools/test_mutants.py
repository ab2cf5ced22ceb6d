"""Mutants: which are drawn, and which tests judge them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import mutants
from tools.reach import Tree
from tools.steps import ROOT


def test_annotations_mean_nothing() -> None:
    first = "def f(x: int | None = 1) -> int:\n    return x"
    assert mutants.meaning(first) == mutants.meaning(first.replace("|", "+"))
    assert mutants.meaning(first) != mutants.meaning(first.replace("1", "2"))


def test_what_isnt_python_is_no_program() -> None:
    assert mutants.meaning("def f(&): pass") is None


def test_tests_named_after_a_module_come_first(tmp_path: Path) -> None:
    files = {
        "tb_pastnet/decay.py": "RATE = 1",
        "tb_pastnet/log.py": "from tb_pastnet import decay",
        "tb_pastnet/net.py": "import keras",
        "tests/unit/test_decay.py": "from tb_pastnet import decay",
        "tests/unit/test_decay_of_runs.py": "from tb_pastnet import log",
        "tests/unit/test_log.py": "from tb_pastnet import log",
        "tests/unit/test_decay_of_networks.py": "from tb_pastnet import decay, net",
        "tests/unit/test_other.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    own, reaching = mutants.tests_of(Tree(tmp_path), "tb_pastnet/decay.py")
    assert own == ["tests/unit/test_decay.py", "tests/unit/test_decay_of_runs.py"]
    assert {*reaching} == {*own, "tests/unit/test_log.py"}


def test_each_judgement_is_of_a_line_that_is_there_and_says_why() -> None:
    lines = mutants.JUDGED.read_text("utf-8").splitlines()
    for key in mutants.judged():
        path, _, change = key.partition(" | ")
        lines_there = [text.strip() for text in (ROOT / path).read_text("utf-8").splitlines()]
        assert any(change.startswith(f"{line} | ") for line in lines_there), key
        assert lines[lines.index(key) + 1].startswith("    "), f"say why below {key}"


@pytest.mark.prove
def test_a_sample_is_drawn_again_by_its_seed() -> None:
    pytest.importorskip("cosmic_ray", reason="`dev.py prove` brings it")
    first = mutants.sample(5, 3)
    assert first == mutants.sample(5, 3)
    for mutant in first:
        assert mutant.was in (ROOT / mutant.path).read_text("utf-8")
        assert mutants.meaning(mutant.source) is not None
