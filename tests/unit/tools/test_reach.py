"""What a file reaches, and which tests are chosen by that."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools import selection
from tools.reach import FRAMEWORKS, NODE, Tree, mentions
from tools.steps import ROOT, Failure

FILES = {
    "tb_pastnet/__init__.py": """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from tb_pastnet.net import Net
        _HOMES = {"Net": "tb_pastnet.net", "read": "tb_pastnet.reader", "v1": "tb_pastnet.v1"}
        """,
    "tb_pastnet/v1/__init__.py": '_HOMES = {"Old": "tb_pastnet.net"}',
    "tb_pastnet/__main__.py": "from tb_pastnet import reader",
    "tb_pastnet/net.py": "import keras",
    "tb_pastnet/reader.py": 'import numpy\ndef read():\n    """Reads.\n    >>> 1\n    1\n    """',
    "tb_pastnet/late.py": "def late():\n    from tb_pastnet.net import Net",
    "tb_pastnet/told.py": '"""Says nothing of tb_pastnet.net."""\nA = "Use pastnet.Net."',
    "tb_pastnet/example.py": 'def f():\n    """F.\n    >>> import tensorflow as tf\n    """',
    "tb_pastnet/cli/__init__.py": "",
    "tb_pastnet/cli/main.py": """
        COMMANDS = ("sum", "sort")
        def main(): from tb_pastnet.cli import sum, sort
        """,
    "tb_pastnet/cli/sum.py": "from tb_pastnet.cli import text",
    "tb_pastnet/cli/sort.py": "from tb_pastnet.cli import text",
    "tb_pastnet/cli/text.py": "",
    "tests/calls.py": "from tb_pastnet.cli.main import main",
    "tests/conftest.py": """
        from tests.devices import two
        from tests.steady import ready
        def pytest_configure(): ready()
        @pytest.fixture(autouse=True)
        def calm(): ready()
        """,
    "tests/devices.py": "import tensorflow",
    "tests/guides.py": 'GUIDE = ROOT / "docs/guide.md"',
    "tests/more.py": "from tests import guides",
    "tests/steady.py": "",
    "tests/page.py": 'from tb_pastnet import reader\nSCRIPT = "drive.mjs"',
    "README.md": "```python\nimport tb_pastnet as pastnet\npastnet.Net()\n```\n",
    "docs/guide.md": "words",
}
TESTS = {
    "imports": ("import tb_pastnet.reader", set()),
    "lazy": ("import tb_pastnet as pastnet\npastnet.read()", set()),
    "lazily_net": ("import tb_pastnet as pastnet\npastnet.Net()", {"keras"}),
    "from_package": ("from tb_pastnet import Net", {"keras"}),
    "of_v1": ("import tb_pastnet as pastnet\npastnet.v1.Old", {"keras"}),
    "any_name": ("import tb_pastnet as pn\n[getattr(pn, name) for name in dir(pn)]", {"keras"}),
    "inside": ("from tb_pastnet import late", {"keras"}),
    "docstring": ("from tb_pastnet import told", set()),
    "anothers_example": ("from tb_pastnet import example", set()),
    "patched": ('def test(monkeypatch): monkeypatch.setattr("tb_pastnet.net.Net", 1)', {"keras"}),
    "program": ('RUN = "import sys\\nimport tensorflow as tf"', {"tensorflow"}),
    "module": ('RUN = ["python", "-m", "tb_pastnet"]', set()),
    "fixture": ("def test(two): pass", {"tensorflow"}),
    "no_fixture": ("def test(one): pass", set()),
    "through": ("from tests import guides", set()),
    "further": ("from tests import more", set()),
    "readme": ('import subprocess\nNAME = "README.md"', {"keras"}),
    "links": ('NAME = "README.md"', set()),
    "guide": ('NAME = "guide.md"', set()),
    "folder": ('HERE = ROOT / "docs" / "start"', set()),
    "folder_of_root": ('HERE = ROOT / "tests" / "kept" / "logs"', set()),
    "folder_in_one": ('HERE = ROOT / "docs/start"', set()),
    "whole": ('PAGES = (ROOT / "docs").rglob("*.md")', set()),
    "half": ('WORD = "start"', set()),
    "beside": ('HERE = Path(__file__).with_name("kept") / "logs"', set()),
    "browser": ("import tests.page", {NODE}),
    "far": ("from tb_pastnet import __main__, late", {"keras"}),
    "both": ("from tb_pastnet import reader, late", {"keras"}),
}
SYSTEM = {
    "tests/contract/test_served.py": "from tb_pastnet import __main__",
    "tests/contract/test_read.py": "from tb_pastnet import reader",
    "tests/contract/test_sums.py": 'from tests.calls import call\ncall("sum")',
    "tests/contract/test_sorts.py": 'from tb_pastnet.cli.main import main\nmain(["sort"])',
}
"""Of what isn't chosen for its needs."""
ALL = {*TESTS, *(Path(name).stem.removeprefix("test_") for name in SYSTEM)}


@pytest.fixture
def tree(tmp_path):
    tests = {f"tests/test_{name}.py": source for name, (source, _) in TESTS.items()}
    for name, source in {**FILES, **tests, **SYSTEM}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = source.splitlines()
        margin = len(lines[1]) - len(lines[1].lstrip()) if source.startswith("\n") else 0
        path.write_text("\n".join(line[margin:] for line in lines) + "\n")
    return Tree(tmp_path)


def test_what_each_way_of_naming_a_module_needs(tree):
    needs = {
        name: tree.outside(tree.root / f"tests/test_{name}.py") & {*FRAMEWORKS, NODE}
        for name in TESTS
    }
    assert needs == {name: expected for name, (_, expected) in TESTS.items()}


def test_what_is_run_as_a_module_is_reached(tree):
    reached = tree.reached(tree.root / "tests/test_module.py")
    assert {tree.root / f"tb_pastnet/{name}.py" for name in ("__main__", "reader")} < reached


def test_tests_are_test_files_and_modules_with_an_example(tree):
    examples = {"tb_pastnet/reader.py", "tb_pastnet/example.py"}
    names = {path.relative_to(tree.root).as_posix() for path in tree.tests}
    assert names == {*examples, *SYSTEM, *(f"tests/test_{name}.py" for name in TESTS)}
    assert tree.is_fast(tree.root / "tb_pastnet/reader.py")
    assert not tree.is_fast(tree.root / "tb_pastnet/example.py")


def test_the_fast_ones_are_those_that_need_nothing(tree):
    chosen = selection.fast(tree)
    fast = [f"tests/test_{name}.py" for name, (_, needs) in TESTS.items() if not needs]
    assert sorted(chosen.files) == sorted(["tb_pastnet/reader.py", *fast])
    assert chosen.left_out == len(tree.tests) - len(chosen.files)


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ("tb_pastnet/told.py", {"docstring"}),
        ("tb_pastnet/reader.py", {"imports", "lazy", "any_name", "module", "both", "read"}),
        ("tb_pastnet/late.py", {"inside", "far", "both"}),
        ("tb_pastnet/__main__.py", {"module", "far", "served"}),
        ("tb_pastnet/cli/sum.py", {"sums"}),
        ("tb_pastnet/cli/sort.py", {"sorts"}),
        ("tb_pastnet/cli/text.py", {"sums", "sorts"}),
        ("tests/devices.py", {"fixture"}),
        ("tests/page.py", {"browser"}),  # but not of the reader that it starts
        ("docs/guide.md", {"guide", "whole", "through"}),
        ("docs/other.md", {"whole"}),
        ("docs/start/first.md", {"folder", "folder_in_one", "whole"}),
        ("tests/kept/logs/events", {"beside", "folder_of_root"}),
        ("other/logs/events", set()),
        ("tests/conftest.py", ALL),
        ("tests/steady.py", set()),
        ("pyproject.toml", ALL),
        ("tests/test_gone.py", set()),
    ],
)
def test_what_changed_chooses_the_files_that_reach_it(tree, changed, names):
    chosen = selection.reaching(tree, [changed])
    files = {Path(name).stem for name in chosen.files if name.startswith("tests/")}
    assert files == {f"test_{name}" for name in names}
    assert len(chosen.files) + chosen.left_out == len(tree.tests)
    assert not chosen.page


@pytest.mark.parametrize("changed", ["frontend/src/index.ts", "tb_pastnet/serve/static/index.js"])
def test_the_pages_own_checks_belong_to_its_files(tree, changed):
    chosen = selection.reaching(tree, [changed])
    assert chosen.page
    assert chosen.files == ["tests/test_browser.py"]


def test_a_conftest_without_hooks_is_reached_by_those_that_ask_for_its_fixtures():
    told = mentions("import pytest\n@pytest.fixture\ndef here(): pass", fixtures=True)
    assert (told.functions, told.hooks, told.unasked) == ({"here"}, False, False)
    told = mentions("import pytest\n@pytest.fixture(autouse=True)\ndef here(): pass")
    assert (told.hooks, told.unasked) == (False, True)


def test_the_projects_own_tests_are_told_apart():
    tree = Tree()
    slow = ("tests/unit/test_docs_programs.py", "tests/e2e/test_page.py")
    assert not any(tree.is_fast(ROOT / name) for name in slow)
    chosen = selection.fast(tree).files
    assert not any(name.startswith(tuple(selection.SYSTEM)) for name in chosen)
    assert {"tests/golden/test_answers.py", "tests/property/test_core.py"} < {*chosen}
    outside = {name: tree.outside(ROOT / name) for name in chosen}
    assert not any(needs & {*FRAMEWORKS, NODE} for needs in outside.values())
    page = [path for path in tree.tests if path.parent == ROOT / "tests/e2e"]
    assert all(NODE in tree.outside(path) for path in page)
    assert all(ROOT / "tb_pastnet/serve/plugin.py" in tree.reached(path) for path in page)


def test_what_changed_is_asked_of_git(tmp_path):
    def git(*arguments):
        user = ["-c", "user.name=x", "-c", "user.email=x@y"]
        subprocess.run(["git", *user, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
        git("add", name)
        git("commit", "-m", name)
    assert selection.changed_since(None, tmp_path) == ["b"]
    assert selection.changed_since("HEAD", tmp_path) == []
    (tmp_path / "a").write_text("other")
    (tmp_path / "new").write_text("")
    assert selection.changed_since(None, tmp_path) == ["a", "new"]
    assert selection.changed_since("HEAD~1", tmp_path) == ["a", "b", "new"]
    with pytest.raises(Failure, match="Could not see what changed: .*nothing"):
        selection.changed_since("nothing", tmp_path)


def test_files_only_compute_if_one_needs_a_framework_and_none_is_of_the_system(tree):
    light, heavy, system = "tests/test_imports.py", "tests/test_inside.py", next(iter(SYSTEM))
    assert selection.only_compute(tree, [light, heavy])
    assert not selection.only_compute(tree, [light])
    assert not selection.only_compute(tree, [heavy, system])


def test_as_many_processes_as_help():
    def count(files, cores):
        told = selection.processes(files, cores)
        return int(told[1]) if told else 1

    assert count(["tests/a.py"], 8) == 1
    assert count(["tests/a.py::test_x", "tests/a.py::test_y"], 8) == 1
    assert count(["tests/a.py", "tests/b.py"], 8) == 2
    assert [count(["tests"], cores) for cores in (1, 2, 16)] == [2, 3, 4]
    many = [f"tests/{name}.py" for name in "abcdef"]
    assert selection.processes(many, 2, computing=True)[1] == "2"
    assert "loadfile" in selection.processes(["tests"])
    assert "worksteal" in selection.processes(["tests"], spread=True)
