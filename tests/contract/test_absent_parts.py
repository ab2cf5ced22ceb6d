"""TensorBoard starts, and its other tabs answer, whatever of ours is missing or broken."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import event_files as files

pytestmark = pytest.mark.promise("absent_parts")

_SCRIPT = """
import importlib.abc, json, sys

class Blocked(importlib.abc.MetaPathFinder):
    names = set(json.loads(sys.argv[2]))
    def find_spec(self, name, path=None, target=None):
        if name in self.names or name.split(".")[0] in self.names:
            raise ImportError(f"{name} is blocked (/a/path/of/this/machine.py)")

sys.meta_path.insert(0, Blocked())
exec(sys.argv[4])
from tests.tensorboards import PREFIX, board
said = {}
with board(sys.argv[1], sys.argv[3]) as here:
    get = lambda path: here.client.get(path)
    listing = get("/data/plugins_listing")
    said["listing"] = listing.json["pastnet"]
    said["scalars"] = get("/data/plugin/scalars/scalars?run=other&tag=loss").json
    said["runs"] = get("/data/runs").json
    said["page"] = get(PREFIX + "/index.js").get_data(as_text=True)
    index = get(PREFIX + "/index")
    said["index"] = [index.status_code, index.get_data(as_text=True)]
    said["overview"] = get(PREFIX + "/overview?run=a").status_code
said["tensorflow"] = "tensorflow" in sys.modules
print("said:" + json.dumps(said))
"""


def tensorboard_without(
    logdir: Path, loader: str, blocked: tuple[str, ...] = (), first: str = ""
) -> dict[str, Any]:
    """Starts TensorBoard in a process of its own where some modules can't be imported."""
    files.write_run(logdir)
    path = logdir / "other" / "events.out.tfevents.1700000000.host"
    path.parent.mkdir()
    path.write_bytes(files.frame(files.scalar_event("loss", 1, 0.5)))
    arguments = [str(logdir), json.dumps(blocked), loader, first]
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, *arguments],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    (said,) = [line for line in done.stdout.splitlines() if line.startswith("said:")] or [None]
    assert said is not None, done.stderr
    found: dict[str, Any] = json.loads(said.removeprefix("said:"))
    assert found["scalars"] == [[files.CREATED, 1, 0.5]], "a neighbour suffers"
    assert "other" in found["runs"]
    assert found["listing"]["enabled"]
    assert found["listing"]["tab_name"] == "PastNet"
    assert "export function render" in found["page"] or "as render}" in found["page"]
    return found


@pytest.mark.parametrize("loader", ["slow", "fast"])
def test_without_tensorflow_everything_is_there(tmp_path: Path, loader: str) -> None:
    found = tensorboard_without(tmp_path, loader, ("tensorflow", "keras"))
    assert not found["tensorflow"]
    assert found["index"][0] == found["overview"] == 200
    assert json.loads(found["index"][1])["runs"][0]["records"] == 40


def test_without_a_library_of_training_everything_is_there(tmp_path: Path) -> None:
    """Of the dependencies that TensorBoard doesn't share, the tab needs none."""
    found = tensorboard_without(tmp_path, "fast", ("google_crc32c", "pandas", "pyarrow", "h5py"))
    assert found["index"][0] == found["overview"] == 200


def test_without_the_page_the_tab_says_so_and_the_data_are_there(tmp_path: Path) -> None:
    gone = """
import pathlib, tb_pastnet.serve.plugin as plugin
plugin.PastNetPlugin.__init__.__defaults__ = (pathlib.Path("/nowhere"),)
"""
    found = tensorboard_without(tmp_path, "fast", first=gone)
    assert "The page of PastNet is missing" in found["page"]
    assert found["index"][0] == 200


@pytest.mark.parametrize(
    "broken", ["tb_pastnet.core.quantize", "tb_pastnet.serve.routes", "tb_pastnet.errors"]
)
def test_without_a_part_of_ours_the_tab_says_why(tmp_path: Path, broken: str) -> None:
    found = tensorboard_without(tmp_path, "fast", (broken,))
    assert f"ImportError: {broken} is blocked" in found["page"]
    assert "machine.py" not in found["page"]
    assert found["index"][0] == 404


def test_with_a_broken_module_of_ours_the_tab_says_why(tmp_path: Path) -> None:
    broken = "import sys, types; sys.modules['tb_pastnet.core.quantize'] = types.ModuleType('x')"
    found = tensorboard_without(tmp_path, "fast", first=broken)
    assert "PastNet could not be loaded" in found["page"]
