"""What a user declares of weights of torch: rows that are frozen, or pruned by hand."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.errors import InvalidArgument, UnknownName

torch = pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")

from torch import nn  # noqa: E402
from torch.nn.utils import prune  # noqa: E402

FREE = np.ones((4, 3), bool)
FREE[1] = False


def recorded(folder, change=lambda model, recorder: None, **settings):
    """The run of five steps, before the third of which something changes."""
    torch.manual_seed(4)
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with pastnet.torch.Recorder(folder, model, optimizer, every=1, **settings) as recorder:
        for step in range(1, 6):
            if step == 3:
                change(model, recorder)
            optimizer.zero_grad()
            model(torch.linspace(-1, 2, 15).reshape(5, 3)).square().mean().backward()
            optimizer.step()
            recorder.record(step)
    (run,) = pastnet.read(folder).runs.values()
    assert dict(run.notes) == {}
    return run


def moved(run):
    return {(each.variable, each.channel, each.held, each.first_step) for each in run.violations}


@pytest.mark.parametrize("name", ["0.weight", "0/weight"])
@pytest.mark.parametrize(
    "kind", [np.asarray, torch.from_numpy, lambda a: torch.tensor(a).bfloat16()]
)
def test_rows_that_are_declared_frozen(name, kind, tmp_path):
    run = recorded(tmp_path, trainable={name: kind(FREE)})
    assert moved(run) == {("0/weight", 1, 3, 1)}
    np.testing.assert_array_equal(run.variables["0/weight"].trainable[-1], [1, 0, 1, 1])


def test_a_whole_weight_and_a_pattern(tmp_path):
    run = recorded(tmp_path, trainable={"0.*": False, "1.weight": True})
    assert {each.variable for each in run.violations} == {"0/weight", "0/bias"}


def test_what_is_declared_later_is_held_from_then_on(tmp_path):
    run = recorded(tmp_path, lambda _, recorder: recorder.declare(trainable={"0.weight": FREE}))
    assert moved(run) == {("0/weight", 1, 3, 3)}
    assert run.variables["0/weight"].trainable[:, 1].tolist() == [1, 1, 0, 0, 0]


def test_what_is_released_is_no_violation(tmp_path):
    run = recorded(
        tmp_path,
        lambda _, recorder: recorder.declare(trainable={"0.weight": True}),
        trainable={"0.weight": FREE},
    )
    assert {(each.first_step, each.last_step) for each in run.violations} == {(1, 2)}


def test_declared_masks_stand_beside_those_of_pruning(tmp_path):
    kept = np.ones((4, 3), bool)
    kept[2] = False

    def change(model, _):
        prune.custom_from_mask(model[0], "weight", torch.from_numpy(kept))

    run = recorded(tmp_path, change, trainable={"0.weight": FREE})
    np.testing.assert_array_equal(run.variables["0/weight"].kept[-1], [1, 1, 0, 1])
    np.testing.assert_array_equal(run.variables["0/weight"].trainable[-1], [1, 0, 0, 1])


def test_what_is_declared_pruned_stands_beside_it_too(tmp_path):
    other = np.roll(FREE, 1, axis=0)

    def change(model, _):
        prune.custom_from_mask(model[0], "weight", torch.from_numpy(other))

    run = recorded(tmp_path, change, kept={"0.weight": FREE})
    np.testing.assert_array_equal(run.variables["0/weight"].kept[-1], [1, 0, 0, 1])


def test_pruned_weights_may_be_zeros_of_either_sign(tmp_path):
    def negative(model, recorder):
        with torch.no_grad():
            model[0].weight[1] = -0.0
            model[0].weight.register_hook(lambda gradient: gradient * torch.from_numpy(FREE))
        recorder.declare(kept={"0.weight": FREE})

    assert moved(recorded(tmp_path, negative)) == set()


def test_flags_that_change_between_records_are_seen_before_the_update(tmp_path):
    def freeze(model, _):
        model[0].requires_grad_(False)

    # `zero_grad` takes the gradient away: nothing moves. One that stays moves it at once.
    assert moved(recorded(tmp_path / "a", freeze)) == set()
    model = nn.Linear(3, 4)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with pastnet.torch.Recorder(tmp_path / "b", model, optimizer, every=1) as recorder:
        for step in range(1, 4):
            model.weight.grad = torch.ones(4, 3)
            model.weight.requires_grad_(step < 2)
            optimizer.step()
            recorder.record(step)
    (run,) = pastnet.read(tmp_path / "b").runs.values()
    assert {(each.first_step, each.last_step) for each in run.violations} == {(2, 3)}


@pytest.mark.parametrize(
    ("masks", "kind", "text"),
    [
        ({"0.weight": np.ones(3, bool)}, InvalidArgument, "Could not use the trainable mask"),
        ({"0.weight": np.ones(3)}, InvalidArgument, "Give one 0 or 1 for each weight.$"),
        (
            {"0.weight": torch.ones(4, 3).to_sparse()},
            InvalidArgument,
            r"use trainable= of '0/weight': expected a dense torch.Tensor, got torch.sparse_coo\. .*to_dense",
        ),
        ({"0.weight": 1}, InvalidArgument, "expected True, False or an array of 0 and 1, got 1"),
        ({"9.weight": False}, UnknownName, "9/weight"),
        ([np.ones(3)], InvalidArgument, r"read trainable=: .*Write trainable=\{'0/weight': …\}"),
    ],
)
def test_what_cannot_be_declared(masks, kind, text, tmp_path):
    model = nn.Sequential(nn.Linear(3, 4))
    with pytest.raises(kind, match=text):
        pastnet.torch.Recorder(tmp_path, model, trainable=masks)


def test_a_recorder_that_is_dropped_leaves_no_hook(tmp_path):
    model = nn.Linear(3, 4)
    recorder = pastnet.torch.Recorder(tmp_path, model, trainable={"weight": FREE})
    alive = weakref.ref(recorder._steps)
    recorder.close()
    del recorder
    gc.collect()
    assert alive() is None
