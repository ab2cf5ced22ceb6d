"""Names in a log are text and nothing else: shown verbatim, looked up, never a path."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from tests import event_files as files
from tests.tensorboards import LOADERS, board

LAYERS = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "\"quoted'`${x}",
    "..",
    "../../etc/passwd",
    "%2e%2e%2f",
    "a\0b",
    "tab\tnew\nline\r",
    "\u202egnp.exe",
    "__proto__",
    "constructor",
    "toString/hasOwnProperty",
    "=HYPERLINK(1)",
    "@sum",
    "ünï🧠",
    " ",
    "x" * 10_000,
]
RUNS = [
    "<b>run<|b>",
    "__proto__",
    "per%2ecent",
    "=1+1",
    "sp ace'\"",
    "\u202egnp",
    "pastnet.0001",
    "a/pastnet.0001.0000000g",
    "y" * 200,
]


@pytest.mark.parametrize("loader", LOADERS)
def test_layers_are_shown_and_found_verbatim(tmp_path: Path, loader: str) -> None:
    files.write_run(tmp_path, steps=range(1, 4), layers=dict.fromkeys(LAYERS, 2))
    with board(tmp_path, loader) as here:
        found = here.json("/index")["networks"][0]["layers"]
        assert [layer["id"] for layer in found] == LAYERS
        header, arrays = here.arrays("/overview", run="a")
        assert header["layers"] == LAYERS
        assert (arrays["counts"].sum(axis=2) == 2).all()
        assert [account["shown"] for account in header["accounts"]] == [3] * len(LAYERS)
        for layer in LAYERS:
            header, arrays = here.arrays("/layer", run="a", layer=layer)
            assert (header["layer"], arrays["state"].shape) == (layer, (2, 3))
            assert here.json("/channel", run="a", layer=layer, channel=0)["layer"] == layer
        text = here.get("/export.csv", run="a").get_data(as_text=True)
        # The reader of Python 3.10 stops at NUL.
        lines = list(csv.reader(io.StringIO(text.replace("\0", "␀"), newline="")))
        cells = {line[1].replace("␀", "\0") for line in lines[1:]}
        assert cells >= {"'=HYPERLINK(1)", "'@sum", "a\0b", "tab\tnew\nline\r"}
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]


@pytest.mark.parametrize("loader", LOADERS)
def test_runs_are_shown_and_found_verbatim(tmp_path: Path, loader: str) -> None:
    for number, run in enumerate(RUNS):
        files.write_run(tmp_path, run, steps=range(1, 4), lineage=number + 1)
    with board(tmp_path, loader) as here:
        index = here.json("/index")
        assert {run["name"] for run in index["runs"]} == set(RUNS)
        for run in RUNS:
            header, _ = here.arrays("/overview", run=run)
            assert header["run"] == run
            assert header["accounts"][0]["shown"] == 3


@pytest.mark.parametrize(
    "name",
    ["../a", "/etc/passwd", "a/../a", "a\0", ".", "..", "", "A", "a/", "a/pastnet.0001.3f9a2c1b"],
)
def test_a_name_that_isnt_there_is_looked_up_and_not_found(tmp_path: Path, name: str) -> None:
    files.write_run(tmp_path)
    with board(tmp_path, "slow") as here:
        for query in ({"run": name}, {"run": "a", "layer": name}):
            response = here.get("/layer", **query)
            assert response.status_code == 404 or query["run"] == "a"
            assert response.status_code == 404, response.get_data()


def test_a_very_long_name_in_a_request_comes_back_cut(tmp_path: Path) -> None:
    files.write_run(tmp_path)
    with board(tmp_path, "slow") as here:
        response = here.get("/overview", run="z" * 100_000)
        assert response.status_code == 404
        assert len(response.get_data()) < 1000


def test_bytes_that_are_no_text_are_not_found(tmp_path: Path) -> None:
    files.write_run(tmp_path)
    with board(tmp_path, "slow") as here:
        path = "/data/plugin/pastnet/overview?run=%ff%fe%00"
        assert here.client.get(path).status_code == 404
