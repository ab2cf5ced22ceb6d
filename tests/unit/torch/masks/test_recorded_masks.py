"""What a log has of `torch.Masks`, and that a Recorder sees held values."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import tb_pastnet as pastnet  # noqa: E402
from tb_pastnet.errors import InvalidArgument  # noqa: E402
from tests.unit.torch.masks.test_torch_masks import (  # noqa: E402
    FREE,
    KEPT,
    adam,
    masked,
    network,
    no_hook_is_left,  # noqa: F401
    train,
)


@pytest.mark.parametrize("way", ["masks_first", "watched"])
def test_masks_that_are_there_are_recorded_and_verified(way, tmp_path):
    module = network()
    optimizer = adam(module)
    masked(module, optimizer)
    if way == "watched":
        recorder = pastnet.watch(module, tmp_path / "run", optimizer, every=1)
    else:
        recorder = pastnet.torch.Recorder(tmp_path / "run", module, optimizer, every=1)
    for step in range(1, 6):
        train(module, optimizer, 1)
        if way != "watched":
            recorder.record(step)
    recorder.close()
    run = pastnet.read(tmp_path)["run"]
    variable = run.variables["0/weight"]
    np.testing.assert_array_equal(variable.masks(5).kept, KEPT)
    np.testing.assert_array_equal(variable.masks(5).trainable | ~KEPT, FREE | ~KEPT)
    assert run.violations == ()
    verified = run.verified
    assert (verified.values, verified.records, verified.changed) == ((~(KEPT & FREE)).sum(), 5, 0)
    assert recorder.notes.counts() == {}


def test_channels_are_frozen_and_pruned_from_the_step_on(tmp_path):
    module = network()
    optimizer = adam(module)
    masks = pastnet.torch.Masks(module, optimizer)
    with pastnet.torch.Recorder(tmp_path / "run", module, masks=masks, every=1) as recorder:
        for step in range(1, 7):
            train(module, optimizer, 1)
            recorder.record(step)
            if step == 2:
                masks.freeze("0.weight", channels=[3])
                masks.prune("0.weight", channels=[16])
            if step == 4:
                masks.thaw("0.weight")
    states = pastnet.read(tmp_path)["run"].variables["0/weight"].states()
    assert states[:, 3].tolist()[2:4] == ["frozen"] * 2
    assert "frozen" not in states[[0, 1, 4, 5], 3]
    assert states[3:, 16].tolist() == ["pruned"] * 3


def test_masks_of_another_network_are_refused(tmp_path):
    for masks in (pastnet.torch.Masks(network()), 3):
        with pytest.raises(InvalidArgument):
            pastnet.torch.Recorder(tmp_path, network(), masks=masks)


def test_runs_from_one_beginning_share_its_origin(tmp_path):
    module = network()
    optimizer = adam(module)
    masks = pastnet.torch.Masks(module, optimizer)
    early = masks.snapshot()
    for name in "ab":
        masks.rewind(early)
        masks.prune_smallest(0.2 if name == "a" else 0.4)
        with pastnet.torch.Recorder(tmp_path / name, module, optimizer, every=1) as recorder:
            for step in range(1, 4):
                train(module, optimizer, 1)
                recorder.record(step)
    log = pastnet.read(tmp_path)
    assert log.overlap("a", "b", unit="weights", kind="kept").layers["0"].overlap > 0.5
    assert log["a"].origin == log["b"].origin == masks.state.origin
