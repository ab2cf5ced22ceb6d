from __future__ import annotations

import subprocess
import sys
import zipfile

import pytest

from tools.steps import ROOT

pytestmark = pytest.mark.prove


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    source = tmp_path_factory.mktemp("source")
    subprocess.run(["git", "clone", "--quiet", ROOT, source], check=True)
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder]
    subprocess.run([*pip, source], check=True)
    (built,) = folder.glob("tb_pastnet-*.whl")
    with zipfile.ZipFile(built) as archive:
        yield archive


def test_the_wheel_holds_the_page_and_its_routes(wheel):
    names = set(wheel.namelist())
    assert {
        "tb_pastnet/py.typed",
        "tb_pastnet/serve/http_api.md",
        "tb_pastnet/serve/openapi.json",
        "tb_pastnet/serve/static/index.js",
    } <= names


def test_the_wheel_holds_nothing_but_the_package(wheel):
    roots = {name.split("/")[0] for name in wheel.namelist()}
    assert {root for root in roots if not root.endswith(".dist-info")} == {"tb_pastnet"}


def test_the_wheel_names_the_plugin(wheel):
    (entry,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert wheel.read(entry).decode().split("\n")[:2] == [
        "[tensorboard_plugins]",
        "pastnet = tb_pastnet.serve.loader:PastNetLoader",
    ]
