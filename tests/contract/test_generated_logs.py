"""The logs that benchmarks read are whole, and hold all that the pictures show."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks._logs import Size, write_logs
from tests.tensorboards import LOADERS, board

SIZE = Size(runs=4, layers=10, channels=400, steps=50)


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    write_logs(folder, SIZE, variants=2)
    return folder


@pytest.mark.parametrize("loader", LOADERS)
def test_generated_logs_are_whole(logdir: Path, loader: str) -> None:
    with board(logdir, loader) as here:
        index = here.json("/index")
        assert [run["records"] for run in index["runs"]] == [SIZE.steps] * SIZE.runs
        assert [run["origin"] for run in index["runs"]] == ["first"] * 3 + ["other"]
        (network,) = index["networks"]
        widths = [layer["channels"] for layer in network["layers"]]
        assert (len(widths), sum(widths), max(widths)) == (SIZE.layers, SIZE.channels, 100)
        for run in index["runs"]:
            header, arrays = here.arrays("/overview", run=run["name"], cols=10)
            assert header["notes"] == []
            assert header["violated_channels"] == 1
            assert (arrays["shares"].sum(axis=2) == 255).all()
            *others, following, _ = arrays["shares"].sum(axis=(0, 1), dtype=int)[1:]
            assert (np.array(others) > 0).all()
            assert not following
            assert arrays["pruned"][:, -1].any()
            assert sum((marks & 1).any() for marks in arrays["marks"]) == 1
            _, last = here.arrays("/records", run=run["name"], count=1)
            assert last["counts"].sum(axis=(1, 2)).tolist() == widths
            assert last["pruned"].any()
