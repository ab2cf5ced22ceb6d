"""The programs in the documentation that read logs, and the notebook, run as they stand."""

from __future__ import annotations

import importlib.util
import json
import re

import pytest

from tests.doc_programs import program_of, programs_of
from tests.interpreter import STRICT, Interpreter
from tools import notebook


@pytest.fixture(scope="module")
def python():
    process = Interpreter(begin=STRICT)
    yield process
    process.close()


def test_the_python_that_reads_logs_runs(python, tmp_path):
    python.run("import os; os.chdir(folder)", folder=str(tmp_path))
    pandas, matplotlib = (importlib.util.find_spec(name) for name in ("pandas", "matplotlib"))
    blocks = programs_of("docs/how_to/reading_logs.md")
    needs = {"dataframe": pandas, ".plot(": matplotlib}
    missing = [word for word, package in needs.items() if package is None]
    runs = [block for block in blocks if not any(word in block for word in missing)]
    said = python.run("\n".join(runs))
    assert "Run('ticket', 13 records, steps 1 to 48, 2 layers)" in said
    assert "50% of the weights are pruned" in said
    assert "overlap: 0.50" in said
    assert not pandas or "ticket     0.5  0.5" in said


def test_the_python_for_stores_runs(python, tmp_path):
    pytest.importorskip("fsspec", reason="its store in memory stands for a bucket")
    [first, *_] = programs_of("docs/start/first_picture.md")
    program = program_of("docs/how_to/stores.md").replace("s3://bucket", "memory://bucket")
    python.run("import os; os.chdir(folder)", folder=str(tmp_path))
    said = python.run(f"{first}\n{program}\nprint(log)")
    assert "Run('first', " in said


def test_the_python_for_a_source_runs(python):
    program = program_of("docs/contributing/architecture.md")
    use = (
        "import numpy as np\nweight = ArrayWeight('w', np.ones((2, 3)))\nprint(weight.read().sum())"
    )
    assert python.run(f"{program}\n{use}") == "6.0\n"


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
