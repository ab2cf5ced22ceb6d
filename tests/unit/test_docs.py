"""The programs in the documentation run as they stand."""

from __future__ import annotations

import ast
import importlib.util
import json
import re

import pytest

from tests.devices import Workers
from tests.interpreter import STRICT, Interpreter
from tests.recorded import read_one
from tests.sampled import sampled
from tools import notebook
from tools.steps import ROOT

FENCED = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
CONFIGURE = "import os\nos.environ['TF_CONFIG'] = {config!r}\n"
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
    "how_to/keras_backends.md": "tests/unit/keras/test_variable_recorder.py",
    "reference/command_line.md": "tests/unit/test_docs_command_line.py",
}
"""Pages whose Python runs in another file of tests."""
HERE = {
    "how_to/reading_logs.md",
    "how_to/stores.md",
    "how_to/tf1_graphs.md",
    "how_to/torch.md",
    "contributing/architecture.md",
}
"""Pages whose Python runs in a test of its own below."""
PAGES = {
    path.relative_to(ROOT / "docs").as_posix(): path.read_text("utf-8")
    for path in sorted((ROOT / "docs").rglob("*.md"))
}
NEEDS = {"how_to/jax.md": ("jax", "optax"), "how_to/numpy.md": ("sklearn",)}


@pytest.fixture(scope="module")
def python():
    process = Interpreter(begin=STRICT)
    yield process
    process.close()


@pytest.fixture
def another_python():
    process = Interpreter(begin=STRICT)
    yield process
    process.close()


def program_of(name):
    return "\n".join(FENCED.findall(PAGES[name]))


def test_the_python_of_every_page_runs_in_a_test():
    with_python = {name for name, text in PAGES.items() if FENCED.search(text)}
    assert with_python == {*SAID, *ELSEWHERE, *HERE}
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


def test_the_python_that_reads_logs_runs(python, tmp_path):
    python.run("import os; os.chdir(folder)", folder=str(tmp_path))
    pandas, matplotlib = (importlib.util.find_spec(name) for name in ("pandas", "matplotlib"))
    blocks = FENCED.findall(PAGES["how_to/reading_logs.md"])
    needs = {"dataframe": pandas, ".plot(": matplotlib}
    missing = [word for word, package in needs.items() if package is None]
    runs = [block for block in blocks if not any(word in block for word in missing)]
    said = python.run("\n".join(runs))
    assert "Run('ticket', 13 records, steps 1 to 48, 2 layers)" in said
    assert "50% of the weights are pruned" in said
    assert "overlap: 0.50" in said
    assert not pandas or "ticket     0.5  0.5" in said


@pytest.mark.parametrize("name", sampled(SAID, 2))
def test_a_guides_python_runs(python, name, tmp_path):
    for package in NEEDS.get(name, ()):
        pytest.importorskip(package, reason="its guide runs where it is installed")
    python.run("import os; os.chdir(folder)", folder=str(tmp_path))
    # Two epochs of a lottery, and twenty steps of a loop, show the same.
    program = program_of(name).replace(", 20)", ", 2)").replace(", 101)", ", 21)")
    said = python.run(program)
    assert all(part in said for part in SAID[name].split("…"))


def test_the_python_for_stores_runs(python, tmp_path):
    pytest.importorskip("fsspec", reason="its store in memory stands for a bucket")
    [first, *_] = FENCED.findall(PAGES["start/first_picture.md"])
    program = program_of("how_to/stores.md").replace("s3://bucket", "memory://bucket")
    python.run("import os; os.chdir(folder)", folder=str(tmp_path))
    said = python.run(f"{first}\n{program}\nprint(log)")
    assert "Run('first', " in said


def test_the_python_for_a_source_runs(python):
    use = (
        "import numpy as np\nweight = ArrayWeight('w', np.ones((2, 3)))\nprint(weight.read().sum())"
    )
    assert python.run(f"{program_of('contributing/architecture.md')}\n{use}") == "6.0\n"


NOTEBOOK = """
import json, os
from tools import notebook
os.chdir(folder)
print("outputs:" + json.dumps(notebook.outputs_of(notebook.code_of(notebook.read()))))
"""


def comparable(outputs):
    """Outputs without what may differ from one machine to the next: numbers and pixels."""
    texts = [
        {kind: "" if kind == "image/png" else re.sub(r"[\d.]+", "0", "".join(text))}
        for output in outputs
        for kind, text in output.get("data", {"printed": output.get("text", "")[:1]}).items()
    ]
    return [output["output_type"] for output in outputs], texts


def test_the_notebook_shows_what_is_stored(python, tmp_path):
    for package in ("IPython", "matplotlib"):
        pytest.importorskip(package, reason=f"{package} isn't installed")
    said = python.run(NOTEBOOK, folder=str(tmp_path))
    shown = json.loads(said.rpartition("outputs:")[2])
    stored = [cell["outputs"] for cell in notebook.code_of(notebook.read())]
    assert list(map(comparable, shown)) == list(map(comparable, stored))
    kinds = [output["data"] for outputs in stored for output in outputs if "data" in output]
    assert sum("text/html" in data for data in kinds) == 3
    pictures = [data["image/png"] for data in kinds if "image/png" in data]
    assert len(pictures) == 2
    assert sum(map(len, pictures)) < 150_000


def test_the_python_for_torch_runs(another_python, tmp_path):
    for name in ("torch", "lightning", "transformers"):
        pytest.importorskip(name, reason=f"{name} isn't installed")
    another_python.run("import os; os.chdir(folder)", folder=str(tmp_path))
    said = another_python.run(program_of("how_to/torch.md"))
    assert "[1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100] 0/weight, channel 0: 8 of 8 held" in said
    assert "Likely cause: momentum left" in said
    assert "rows that moved all the same: {'weight_decay'}" in said
    assert "tuned: ()" in said


def test_the_python_for_tf1_graphs_runs(another_python, tmp_path):
    # In a process of its own: it turns off what the others need.
    another_python.run("import os; os.chdir(folder)", folder=str(tmp_path))
    said = another_python.run(program_of("how_to/tf1_graphs.md"))
    assert "moved in the last step: ['hidden/kernel', 'out/kernel']" in said


def test_the_program_of_workers_runs_as_two(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = FENCED.findall(PAGES["how_to/many_devices.md"])[-1]
    workers = Workers(begin=CONFIGURE)
    assert workers.run(program) == ["leaks: []\n"] * 2
    workers.close()
    assert read_one(tmp_path / "runs" / "workers").record_steps() == [1, *range(10, 101, 10)]


@pytest.mark.parametrize("path", sorted((ROOT / "docs").rglob("*.md")), ids=lambda path: path.name)
def test_every_file_that_it_links_to_is_there(path):
    links = re.findall(r"\]\(([^)#:]+)\)|(?:src|srcset)=\"([^\"]+)\"", path.read_text("utf-8"))
    missing = [
        link for pair in links for link in pair if link and not (path.parent / link).is_file()
    ]
    assert missing == []


LIKE_AN_ITEM = re.compile(r"^ *(?:\w+(?: \([^)]*\))?: )?(\d+|[A-Z])\. ")


def items_by_accident(text):
    """Lines that begin like an item of a list, and neither begin nor continue one."""
    blank, last = True, 0
    for line in text.splitlines():
        if match := LIKE_AN_ITEM.match(line):
            number = int(match[1]) if match[1].isdigit() else 0
            if ": " in match[0] or not number or not (blank or number == last + 1):
                yield line
            last = number
        blank = not line.strip()


def test_an_item_by_accident_is_found():
    text = "1. One\n2. Two\n\nThe code is\n1. It is\nof every\nM. It\n    tau: 1. Soft"
    assert list(items_by_accident(text)) == ["1. It is", "M. It", "    tau: 1. Soft"]


def test_no_line_of_prose_is_an_item_of_a_list_by_accident():
    texts = {**PAGES, "README.md": (ROOT / "README.md").read_text("utf-8")}
    for path in (ROOT / "tb_pastnet").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                texts[f"{path}:{node.lineno}"] = str(node.value.value)
    lines = {name: list(items_by_accident(text)) for name, text in texts.items()}
    assert {name: accidents for name, accidents in lines.items() if accidents} == {}


def test_every_heading_that_it_links_to_is_there():
    for path in (ROOT / "docs").rglob("*.md"):
        for file, mark in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", path.read_text("utf-8")):
            titles = re.findall(
                r"^#+ (.+)$", (path.parent / (file or path.name)).read_text("utf-8"), re.M
            )
            marks = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
            assert mark in marks, f"{path.name}: {file}#{mark}"


def test_every_page_is_listed_in_the_index_of_its_section():
    for name in PAGES.keys() - {"index.md"}:
        folder, _, page = name.rpartition("/")
        index, link = f"{folder}/index.md".lstrip("/"), page
        if page == "index.md" and folder:
            index, link = "index.md", name
        assert f"]({link})" in PAGES[index], name


def test_each_picture_is_shown_somewhere_and_small():
    texts = [
        path.read_text("utf-8") for path in (*(ROOT / "docs").rglob("*.md"), ROOT / "README.md")
    ]
    pictures = sorted((ROOT / "docs" / "images").glob("*.png"))
    assert pictures
    for picture in pictures:
        assert any(f"images/{picture.name}" in text for text in texts), picture.name
        assert picture.stat().st_size <= 150_000, picture.name


@pytest.mark.parametrize("tab", ["theirs", "ours"])
def test_each_tab_is_asked_all_of_the_twenty_questions(tab):
    page = ROOT / "docs" / "benchmarks" / "histograms.md"
    guide = page.read_text("utf-8").split("## The questions")[1]
    asked = (ROOT / "benchmarks" / "_histograms" / f"{tab}.mjs").read_text("utf-8")
    numbers = re.findall(r"^(\d+)\. ", guide, re.M)
    assert numbers == [str(number) for number in range(1, 21)]
    assert re.findall(r"^  (?:async )?(\d+)[(:]", asked, re.M) == numbers


def test_the_page_has_what_the_questions_are_read_from():
    scripts = [
        ROOT / "benchmarks" / "_histograms" / name for name in ("ours.mjs", "everything.mjs")
    ]
    page = "".join(path.read_text("utf-8") for path in (ROOT / "frontend" / "src").rglob("*.ts*"))
    selectors = set()
    for script in scripts:
        for text in re.findall(
            r"[\"`](\.[a-z][^\"`]*|main [^\"`]*|dialog[^\"`]*)[\"`]", script.read_text("utf-8")
        ):
            selectors |= set(re.findall(r"\.([a-z][a-z-]+)", text))
    assert len(selectors) > 10
    assert {name for name in selectors if not re.search(rf"\b{name}\b", page)} <= {"mjs"}
