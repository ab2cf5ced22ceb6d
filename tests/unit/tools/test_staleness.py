"""Which rows of the table of promises are stale."""

from __future__ import annotations

import subprocess

import pytest

from tests.promises import NAMES
from tools.reach import Tree
from tools.staleness import Staleness, files_of_rows, reached_by_rows

PROMISED = "import pytest\n{}\n@pytest.mark.promise({!r})\ndef test_it(): pass\n"
FILES = {
    "tb_pastnet/__init__.py": "",
    "tb_pastnet/near.py": '"""Adds."""\ndef add(a, b):\n    """Adds."""\n    return a + b\n',
    "tb_pastnet/far.py": "FAR = 1\n",
    "tb_pastnet/serve/static/index.js": "1",
    "tests/promises.py": "",
    "tests/e2e/drive.mjs": "1",
    "tests/golden/test_kept.py": "from tb_pastnet import far\n",
    "tests/unit/test_ends.py": PROMISED.format("from tb_pastnet import near", "ends"),
    "tests/unit/test_soak.py": PROMISED.format("from tb_pastnet import far", "soak"),
    "tests/e2e/test_page.py": PROMISED.format('from tests import promises\nDRIVE = "drive.mjs"', "prefixes"),
    "tests/unit/test_program.py": f"PROGRAM = {PROMISED.format('', 'soak')!r}\n",
    "tools/columns.py": "COLUMNS = ()\n",
    "pyproject.toml": "[project]\n",
}  # fmt: skip
ROWS = ("ends", "soak", "prefixes", "versions")


def git(folder, *arguments):
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    return subprocess.run(
        ["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(folder, name):
    git(folder, "add", "--all")
    git(folder, "commit", "--message", name)
    return git(folder, "rev-parse", "--short", "HEAD")


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "init")
    return folder, commit(folder, "first")


def changed(folder, *commits):
    staleness = Staleness(reached_by_rows(Tree(folder)), folder)
    return {row: staleness.changed(row, commits) for row in ROWS}


@pytest.mark.parametrize(
    ("name", "text", "stale"),
    [
        ("tb_pastnet/near.py", '"""Sums."""\ndef add(a, b):  # or\n    return (a + b)\n', set()),
        ("tb_pastnet/near.py", "def add(a, b):\n    return a - b\n", {"ends"}),
        ("tb_pastnet/near.py", 'def add(a, b):\n    "A"; return a + b, "A"\n', {"ends"}),
        ("tb_pastnet/near.py", "from tb_pastnet import new\n", {"ends"}),
        ("tb_pastnet/far.py", "FAR = 2\n", {"soak", "versions"}),
        ("tb_pastnet/serve/static/index.js", "2", {"prefixes"}),
        ("tb_pastnet/serve/static/other.js", "2", {"prefixes"}),
        ("tests/e2e/drive.mjs", "2", {"prefixes"}),
        ("tests/promises.py", "A = 1\n", set()),
        ("pyproject.toml", "", {"versions"}),
        ("README.md", "", set()),
    ],
)
@pytest.mark.parametrize("committed", [False, True])
def test_a_row_is_stale_when_what_its_tests_reach_has_changed(
    repository, name, text, stale, committed
):
    folder, first = repository
    (folder / name).write_text(text)
    if committed:
        commit(folder, "second")
    assert changed(folder, first) == {row: int(row in stale) for row in ROWS}


def test_of_several_commits_each_must_be_fresh_and_files_count_once(repository):
    folder, first = repository
    (folder / "tb_pastnet/near.py").write_text("A = 1\n")
    second = commit(folder, "second")
    (folder / "tb_pastnet/near.py").write_text("A = 2\n")
    (folder / "tests/unit/test_ends.py").write_text(FILES["tests/unit/test_ends.py"] + "A = 1\n")
    assert changed(folder, first, second)["ends"] == 2
    assert changed(folder, commit(folder, "third"), first)["ends"] == 2


@pytest.mark.parametrize("which", ["{}-dirty", "abcdef0", "", "--output=here"])
def test_of_a_commit_that_is_not_there_nothing_is_known(repository, which):
    folder, first = repository
    assert changed(folder, which.format(first)) == dict.fromkeys(ROWS)
    assert changed(folder, first, which.format(first)) == dict.fromkeys(ROWS)
    assert changed(folder) == dict.fromkeys(ROWS)


def test_a_clone_without_the_history_knows_nothing_of_it(repository, tmp_path):
    folder, first = repository
    (folder / "README.md").write_text("")
    second = commit(folder, "second")
    git(tmp_path, "clone", "--depth", "1", f"file://{folder}", "shallow")
    assert changed(tmp_path / "shallow", first) == dict.fromkeys(ROWS)
    assert changed(tmp_path / "shallow", second) == dict.fromkeys(ROWS, 0)


def test_after_a_release_a_commit_is_named_by_its_tag(repository):
    folder, _ = repository
    git(folder, "tag", "--annotate", "--message", "1", "v1.0.0")
    (folder / "tb_pastnet/near.py").write_text("A = 1\n")
    commit(folder, "second")
    described = git(folder, "describe", "--always", "--dirty")
    assert described.startswith("v1.0.0-1-g")
    assert [changed(folder, name)["ends"] for name in ("v1.0.0", described)] == [1, 0]


def test_each_row_has_tests_and_those_reach_the_package():
    tree = Tree()
    assert files_of_rows(tree).keys() == {*NAMES}
    package = {name for name in reached_by_rows(tree)["kill_9"] if name.startswith("tb_pastnet/")}
    assert {"tb_pastnet/record/sink.py", "tb_pastnet/serve/loader.py"} <= package
