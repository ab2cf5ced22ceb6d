"""Names in a log are text and nothing else: shown verbatim, looked up, never a path."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from tensorboard import context

from tb_pastnet.core.violation import Violation
from tb_pastnet.reader.series_source import RequestContext
from tb_pastnet.reader.store import Store
from tests import event_files as files
from tests.masks_in_force import masks_in_force
from tests.tensorboards import LOADERS, board

pytestmark = pytest.mark.promise("hostile_names")

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
        assert (arrays["shares"].sum(axis=2) == 255).all()
        told, arrays = here.arrays("/records", run="a")
        assert told["layers"] == LAYERS
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
def test_masks_and_violations_of_every_name_are_found(tmp_path: Path, loader: str) -> None:
    kept = np.arange(18) > 0
    writer = files.LineageWriter(tmp_path, layers=dict.fromkeys(LAYERS, 2))
    writer.describe(0)
    kernels = [f"{layer}/kernel" for layer in LAYERS]
    writer.masks(1, {("kept", kernel): kept for kernel in kernels})
    cause = "<img src=x onerror=alert(1)>"
    writer.violations(3, [Violation(one, 1, 2, 3, 1, 9, 0.5, cause) for one in kernels])
    codes = files.hold(files.codes(range(1, 4), 2), slice(None), kept.reshape(9, 2))
    writer.records(range(1, 4), dict.fromkeys(kernels, codes))
    with board(tmp_path, loader) as here:
        _, arrays = here.arrays("/overview", run="a")
        assert (np.abs(arrays["pruned"] - 1 / 18) < 1e-7).all()
        assert arrays["marks"].tolist() == [[0, 1, 1]] * len(LAYERS)
        _, arrays = here.arrays("/records", run="a")
        assert (arrays["pruned"] == 1).all()
        assert arrays["violated"].tolist() == [[0, 1, 1]] * len(LAYERS)
        listed = here.json("/violations", run="a")["violations"]
        assert [(one["layer"], one["variable"]) for one in listed] == list(
            zip(LAYERS, kernels, strict=True)
        )
        assert {one["cause"] for one in listed} == {cause}
        header, arrays = here.arrays("/overlap_layers", run="a", other="a")
        assert header["layers"] == LAYERS
        assert (arrays["both"] == 17).all()
        for layer in LAYERS:
            found = here.json("/overlap", run=["a", "a"], layer=layer)
            assert (found["layer"], found["pairs"][0]["union"]) == (layer, 17)
        store = Store(here.provider)
        caller = RequestContext(context.RequestContext(), "")
        run = store.catalog(caller).runs["a"]
        for kernel in kernels:
            found = masks_in_force(store.reader(caller, run), kernel, 2)
            assert found.kept is not None
            assert found.kept.tolist() == kept.tolist()


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
        found = here.json("/overlap", run=RUNS)
        assert [run["name"] for run in found["runs"]] == RUNS
        assert {pair["overlap"] for pair in found["pairs"]} == {1}


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
