from __future__ import annotations

import ast
import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tb_pastnet as pastnet

ROOT = Path(pastnet.__file__).parent.parent
PACKAGE = ROOT / "tb_pastnet"
MODULES = sorted(PACKAGE.rglob("*.py"))


def python(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, text=True, capture_output=True, check=False
    )


def without(names: str) -> str:
    """A program's first lines, after which these modules can't be imported."""
    return f"import sys\nfor name in {names.split()!r}: sys.modules[name] = None\n"


ROOMS = {"jax", "keras", "numpy", "torch"}
WITHOUT_ANY = {"OneShot", "PolynomialDecay", "Snapshot", "errors", "read", "testing", "v1", "watch"}


def test_the_public_surface_is_all():
    public = [
        "Masked",
        "MaskedDense",
        "Masks",
        "OneShot",
        "PastDeltas",
        "PastNetCallback",
        "PastNetwork",
        "PastVariables",
        "PolynomialDecay",
        "PruningCallback",
        "Recorder",
        "Snapshot",
        "clone_network",
        "errors",
        "jax",
        "keras",
        "load_model",
        "numpy",
        "read",
        "summary",
        "testing",
        "torch",
        "v1",
        "watch",
    ]
    assert set(dir(pastnet)) == {*public, "__version__"}
    assert pastnet.__all__ == [name for name in public if name not in ROOMS]
    for name in public:
        assert getattr(pastnet, name) is getattr(pastnet, name)


@pytest.mark.parametrize(
    ("room", "missing", "left"),
    [
        ("", "", {*dir(pastnet)} - ROOMS - {"__version__"}),
        ("", "keras", WITHOUT_ANY),
        ("", "tensorflow keras torch jax", WITHOUT_ANY),
        (".torch", "", {*dir(pastnet.torch)}),
        (
            ".torch",
            "transformers lightning pytorch_lightning",
            {"Masks", "Recorder", "ScheduledPruning", "preflight", "summary", "watch"},
        ),
    ],
)
def test_a_star_import_rebinds_no_framework_and_needs_none_that_is_missing(room, missing, left):
    before = "numpy = torch = jax = keras = before = object()\nknown = {*globals(), 'known'}\n"
    after = "print(*sorted({*globals()} - known))\nassert numpy is torch is jax is keras is before"
    done = python(f"{without(missing)}{before}from tb_pastnet{room} import *\n{after}")
    assert done.stdout.split() == sorted(left), done.stderr


@pytest.mark.parametrize("package", ["", ".jax", ".numpy", ".testing", ".torch", ".v1"])
def test_the_example_of_a_package_holds(package):
    results = doctest.testmod(importlib.import_module(f"tb_pastnet{package}"))
    assert results.attempted > 0
    assert results.failed == 0


def test_a_name_that_is_not_public_is_refused():
    with pytest.raises(AttributeError, match="module 'tb_pastnet' has no attribute 'Callback'"):
        pastnet.Callback  # noqa: B018


@pytest.mark.parametrize(
    ("room", "framework"), [("jax", "jax"), ("numpy", "")], ids=["jax", "numpy"]
)
def test_a_room_brings_its_framework_when_it_is_used(room, framework):
    done = python(without(framework) + f"import tb_pastnet; print(tb_pastnet.{room}.__all__)")
    assert (done.stdout[:11], done.stderr) == ("['Recorder'", "")
    done = python(without(framework) + f"import tb_pastnet; tb_pastnet.{room}.Recorder")
    text = f"Could not load tb_pastnet.{room}.Recorder: expected {framework} to be installed, got"
    assert (text in done.stderr) == bool(framework)
    assert ("Run: pip install tb-pastnet[jax]" in done.stderr) == bool(framework)


def test_every_public_class_and_function_says_what_it_does():
    for name in set(dir(pastnet)) - {"__version__"}:
        assert getattr(pastnet, name).__doc__, name


def test_importing_loads_neither_tensorflow_nor_tensorboard():
    done = python(
        "import sys, tb_pastnet\n"
        "print(*sorted({m.split('.')[0] for m in sys.modules} & "
        "{'tensorflow', 'keras', 'torch', 'jax', 'tensorboard', 'numpy', 'werkzeug'}))"
    )
    assert (done.stdout.strip(), done.stderr) == ("", "")


@pytest.mark.parametrize("name", ["PastNetCallback", "PastVariables", "Recorder", "summary"])
def test_without_tensorflow_the_error_says_what_to_install(name):
    done = python(without("tensorflow keras") + f"import tb_pastnet; tb_pastnet.{name}")
    assert done.returncode == 1
    assert f"ImportError: Could not load tb_pastnet.{name}: expected" in done.stderr
    assert "Run: pip install tb-pastnet[tensorflow]" in done.stderr


def test_without_torch_the_error_says_what_to_install():
    done = python(without("torch") + "import tb_pastnet; tb_pastnet.torch.Recorder")
    assert done.returncode == 1
    assert "Could not load tb_pastnet.torch.Recorder: expected torch to be installed" in done.stderr
    assert "Run: pip install tb-pastnet[torch]" in done.stderr


def test_the_entry_point_needs_nothing_but_tensorboard():
    done = python(
        without("tensorflow keras google_crc32c") + "import tb_pastnet.serve.loader as loader\n"
        "assert loader.PastNetLoader\n"
        "print(*sorted({m.split('.')[0] for m in sys.modules} & {'werkzeug'}))"
    )
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_the_version_is_written_once_and_the_same():
    written = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.M)
    assert written
    assert written[1] == pastnet.__version__
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {pastnet.__version__}\n" in citation


def test_the_wheel_is_told_of_each_file_that_is_no_module():
    pyproject = (ROOT / "pyproject.toml").read_text("utf-8")
    (section,) = re.findall(
        r"^\[tool\.setuptools\.package-data\]\n(.+?)\n\n", pyproject, re.M | re.S
    )
    told = set()
    for package, patterns in re.findall(r'^"?([\w.]+)"? = (\[.+?\])$', section, re.M):
        folder = ROOT / package.replace(".", "/")
        told |= {path for pattern in ast.literal_eval(patterns) for path in folder.glob(pattern)}
    files = {
        path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    }
    assert {path for path in files if path.suffix != ".py"} == told


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_modules_and_functions_stay_small(path):
    text = path.read_text("utf-8")
    assert len(text.splitlines()) < 500  # one concept, however long; most are under 300
    tree = ast.walk(ast.parse(text))
    functions = [node for node in tree if isinstance(node, ast.FunctionDef)]
    long = [node.name for node in functions if code_lines(node) >= 40]
    assert long == []


def code_lines(function: ast.FunctionDef) -> int:
    """The lines of a function's body without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_every_room_of_the_package_has_a_docstring():
    without_docstring = [path.name for path in MODULES if not ast.get_docstring(parsed(path))]
    assert without_docstring == []


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def test_no_file_names_the_machine_it_was_written_on():
    home = re.compile(r"/(?:root|work)/\w")
    tracked = subprocess.run(
        ["git", "ls-files", "*.py", "*.md", "*.ts", "*.toml", "*.json"],
        cwd=ROOT,
        text=True,
        capture_output=True,
        check=False,
    ).stdout.split()
    named = [
        name
        for name in tracked
        if home.search((ROOT / name).read_text("utf-8")) and name != "tests/unit/test_package.py"
    ]
    assert named == []
