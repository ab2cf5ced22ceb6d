"""Mutants: which are drawn, and which tests judge them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import mutant_tests, mutants
from tools.forks import PASSED, PLUGINS, Forks
from tools.mutant_tests import Bench
from tools.reach import Tree
from tools.steps import ROOT


def test_annotations_mean_nothing() -> None:
    first = "def f(x: int | None = 1) -> int:\n    return x"
    assert mutants.meaning(first) == mutants.meaning(first.replace("|", "+"))
    assert mutants.meaning(first) != mutants.meaning(first.replace("1", "2"))


def test_what_isnt_python_is_no_program() -> None:
    assert mutants.meaning("def f(&): pass") is None


FILES = {
    "tb_pastnet/core/decay.py": "RATE = 1\ndef decay(x):\n    return x * RATE\n",
    "tb_pastnet/log.py": "from tb_pastnet.core import decay",
    "tests/unit/core/test_decay.py": """
from tb_pastnet.core.decay import decay
def test_fails(): assert decay(1) == 2
def test_calls(): assert decay(1) == 1
def test_names(): assert decay.__name__ == "decay"
""",
    "tests/unit/core/test_decay_of_runs.py": "from tb_pastnet import log",
    "tests/unit/keras/test_decay.py": "from tb_pastnet.core import decay",
    "tests/unit/test_log.py": "from tb_pastnet import log",
    "tests/conformance/test_all.py": "from tb_pastnet import log",
    "tests/contract/test_system.py": "from tb_pastnet import log",
    "tests/unit/test_other.py": "",
    "pytest.ini": "[pytest]\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    for name, text in FILES.items():
        for folder in reversed((tmp_path / name).relative_to(tmp_path).parents[:-1]):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / "__init__.py").touch()
        (tmp_path / name).write_text(text)
    return Tree(tmp_path)


def test_files_named_after_a_module_of_its_room_come_first_then_others_that_use_it(
    tree: Tree,
) -> None:
    own, using = mutant_tests.files_of(tree, "tb_pastnet/core/decay.py")
    assert own == ["tests/unit/core/test_decay.py", "tests/unit/core/test_decay_of_runs.py"]
    assert using == ["tests/unit/keras/test_decay.py", "tests/conformance/test_all.py"]


def test_the_function_of_a_line_is_the_innermost_whose_body_has_it() -> None:
    source = "@cache\ndef f(\n    x=1,\n):\n    def g():\n        return 1\n    return g\n"
    lines = [mutant_tests.function_at(source, line) for line in range(1, 8)]
    assert lines == [None, None, None, None, 1, 5, 1]


def test_tests_that_call_a_function_judge_it_first_and_those_that_fail_without_a_fault_never(
    tree: Tree,
) -> None:
    path, source = "tb_pastnet/core/decay.py", FILES["tb_pastnet/core/decay.py"]
    forks, bench = Forks(tree.root, PLUGINS), Bench(tree)
    try:
        first, last = bench.stages(path, source, 3, forks)
        file = "tests/unit/core/test_decay.py"
        ids = [f"{file}::test_{name}" for name in ("fails", "calls", "names")]
        assert (first.files, {*first.without}) == ([file], {ids[0], ids[2]})
        assert (last.files, {*last.without}) == ([file], {ids[0], ids[1]})
        for becomes, died in (("x * RATE", False), ("x + RATE", True), ("1 // 0", True)):
            mutants.put(tree.root / path, source.replace("x * RATE", becomes))
            code = forks.run(first.files, first.without, 60, None).code
            assert (code not in PASSED) == died, code
        mutants.put(tree.root / path, source.replace("return x", "while True: x"))
        assert forks.run(first.files, first.without, 1, None).code < 0
    finally:
        forks.close()


def test_the_table_has_a_line_a_room_and_each_mutant_that_lived() -> None:
    faults = [
        mutants.Mutant(f"tb_pastnet/{name}.py", "", 7, "a < b", "a <= b")
        for name in ("core/axes", "core/names", "torch/tree")
    ]
    found = [mutants.Judged(fault, died, 4) for fault, died in zip(faults, (1, 0, 1), strict=True)]
    lines = [line.split() for line in mutants.table(found).splitlines()]
    assert lines[1] == ["core", "2", "1", "1"]
    assert lines[2] == ["tb_pastnet/core/names.py:7,", "shown", "to", "4", "tests"]
    assert lines[-2:] == [["torch", "1", "1", "0"], ["all", "3", "2", "1"]]


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
    first = mutants.sample(5, 3, ["numpy", "record/masks"])
    assert first == mutants.sample(5, 3, ["numpy", "record/masks"])
    assert {mutant.room for mutant in mutants.sample(40, 3)} > {"torch", "cli", "reader"}
    for mutant in first:
        assert mutant.room in {"numpy", "record/masks"}
        assert mutant.was in (ROOT / mutant.path).read_text("utf-8")
        assert mutants.meaning(mutant.source) is not None
