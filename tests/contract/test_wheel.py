"""The wheel holds the package and nothing else, and works where only its own dependencies are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile

import pytest

from tb_pastnet import __version__
from tools import environment
from tools.bundle import STATIC, contents
from tools.steps import ROOT

pytestmark = pytest.mark.prove

SERVES_THE_TAB = """
from importlib.metadata import entry_points
from tensorboard.plugins.base_plugin import TBContext
from werkzeug.test import Client

(point,) = [one for one in entry_points(group="tensorboard_plugins") if one.name == "pastnet"]
plugin = point.load()().load(TBContext())
page = plugin.frontend_metadata().es_module_path
apps = plugin.get_plugin_apps()
scripts = [path for path in apps if path.endswith(".js")]
print(page in scripts, len(scripts), {Client(apps[path]).get(path).status_code for path in scripts})
"""


def run(*command):
    """What a command prints where nothing points at this tree, which pip would take for installed."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([*map(str, command)], check=True, text=True, capture_output=True, env=env)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    source = tmp_path_factory.mktemp("source")
    folder = tmp_path_factory.mktemp("wheel")
    run("git", "clone", "--quiet", ROOT, source)
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, source)
    (path,) = folder.glob("tb_pastnet-*.whl")
    return path


@pytest.fixture
def wheel(built):
    with zipfile.ZipFile(built) as archive:
        yield archive


@pytest.fixture(scope="module")
def bare(built, tmp_path_factory):
    """An environment of the wheel and its dependencies, and the command of its pip."""
    venv = tmp_path_factory.mktemp("bare")
    pip = environment.make(venv)
    run(*pip, "install", "--quiet", built)
    return environment.venv_python(venv), pip


def test_the_wheel_holds_the_page_and_its_routes(wheel):
    names = set(wheel.namelist())
    assert {"tb_pastnet/py.typed", "tb_pastnet/serve/http_api.md"} <= names
    assert {"tb_pastnet/serve/openapi.json", "tb_pastnet/cli/html_file.js"} <= names
    page = {f"tb_pastnet/serve/static/{name}" for name in contents(STATIC)}
    assert {name for name in names if name.startswith("tb_pastnet/serve/static/")} == page


def test_the_wheel_holds_nothing_but_the_package(wheel):
    roots = {name.split("/")[0] for name in wheel.namelist()}
    assert {root for root in roots if not root.endswith(".dist-info")} == {"tb_pastnet"}


def test_its_description_links_to_nothing_relative(wheel):
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    text = wheel.read(name).decode()
    links = re.findall(r'\]\(([^)]+)\)|(?:src|srcset)="([^"]+)"', text)
    targets = [link or source for link, source in links]
    assert len(targets) > 20
    assert [each for each in targets if not each.startswith("https://")] == []


def test_the_wheel_carries_its_license_and_those_of_the_page(wheel):
    licenses = [name for name in wheel.namelist() if ".dist-info/licenses/" in name]
    texts = {name.rpartition("/")[2]: wheel.read(name) for name in licenses}
    assert texts == {
        "LICENSE": (ROOT / "LICENSE").read_bytes(),
        "notices.txt": (STATIC / "notices.txt").read_bytes(),
    }


def test_its_dependencies_go_together(bare):
    _, pip = bare
    assert run(*pip, "check") == "No broken requirements found."


def test_its_command_runs(bare):
    python, _ = bare
    assert run(python.parent / "pastnet", "--version").endswith(__version__)
    assert run(python, "-I", "-m", "tb_pastnet", "--version").endswith(__version__)


def test_its_demo_needs_nothing_else(bare, tmp_path):
    python, _ = bare
    run(python.parent / "pastnet", "demo", "--once", "--logdir", tmp_path)
    report = run(python.parent / "pastnet", "report", tmp_path)
    assert report.count("Likely cause: weight decay") > 1


def test_tensorboard_finds_the_tab_and_gets_all_of_its_scripts(bare):
    python, _ = bare
    scripts = len(list(STATIC.glob("*.js")))
    assert run(python, "-I", "-W", "ignore", "-c", SERVES_THE_TAB) == f"True {scripts} {{200}}"
