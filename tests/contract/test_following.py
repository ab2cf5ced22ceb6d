"""Layers that something else than an optimizer moves: a state of their own in every answer."""

from __future__ import annotations

from pathlib import Path

import pytest

import tb_pastnet as pastnet
from tests import event_files as files
from tests.commands import command
from tests.tensorboards import LOADERS, board

LAYERS = {"online": 4, "target": 6}


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A target that moves at each step; from step 21 on one of its channels is pruned by a mask."""
    folder = tmp_path_factory.mktemp("following")
    steps = range(1, 41)
    writer = files.LineageWriter(folder, "byol", layers=LAYERS, follows={"target"})
    writer.describe(1, audited=True)
    kernel = files.codes(steps, 6, seed=2)
    files.prune(kernel, slice(20, None), slice(0, 1))
    writer.records(steps, {"target/kernel": kernel})
    writer.close(40)
    return folder


@pytest.mark.parametrize("loader", LOADERS)
def test_routes_tell_it(logdir: Path, loader: str) -> None:
    with board(logdir, loader) as here:
        (network,) = here.json("/index")["networks"]
        assert [layer["follows"] for layer in network["layers"]] == [False, True]
        _, arrays = here.arrays("/records", run="byol")
        online, target = arrays["counts"]
        assert not online[:, 6].any()
        assert target[:20].tolist() == [[0, 0, 0, 0, 0, 0, 6, 0]] * 20
        assert target[20:].tolist() == [[0, 0, 0, 0, 0, 1, 5, 0]] * 20
        header, _ = here.arrays("/layer", run="byol", layer="target")
        assert header["follows"] is True
        _, drawn = here.arrays("/overview", run="byol", cols=2)
        assert drawn["shares"][1, :, 6].tolist() == pytest.approx([255, 212.5], abs=0.5)
        # A threshold makes only quiet what trains.
        _, arrays = here.arrays("/records", run="byol", th=1000.0)
        assert arrays["counts"][1, -1].tolist() == [0, 0, 0, 0, 0, 1, 5, 0]


def test_python_and_the_command_tell_it(logdir: Path) -> None:
    (run,) = pastnet.read(logdir).runs.values()
    states = run.variables["target/kernel"].states()
    assert set(states[:, 1:].ravel()) == {"following"}
    assert states[[0, -1], 0].tolist() == ["following", "pruned"]
    assert run.overview().following[-1].tolist() == [0, 5]
    assert run.violations == ()
    assert not [each for each in run.findings() if each.kind in ("frozen", "stalled", "violations")]
    shown = command("report", str(logdir), "--fail-on", "violations", "--fail-on", "stalled")
    assert shown.code == 0
    assert "following" in shown.out
