"""The demo as users call it, and what its story must show in both loaders."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from demo import NAMES
from demo.digits import STEPS_PER_EPOCH
from demo.runs import EPOCHS, FREEZE, LEAK, PRUNE, THAW
from tb_pastnet.core import states
from tests.tensorboards import LOADERS, board
from tools.steps import ROOT

pytestmark = pytest.mark.prove
RECORDS = EPOCHS * STEPS_PER_EPOCH // 2
CONVOLUTIONS = ("block1/conv1", "block1/conv2", "block2/conv1", "block2/conv2")


@pytest.fixture(scope="module")
def logdir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs") / "demo"
    command = [sys.executable, "-m", "demo", "--once", "--logdir", folder]
    subprocess.run(command, cwd=ROOT, check=True)
    return folder


@pytest.fixture(scope="module", params=LOADERS)
def tab(request, logdir):
    with board(logdir, request.param) as running:
        yield running


def cells(tab, run, layer):
    """The steps, and the state of each channel (channels, records)."""
    header, arrays = tab.arrays("/layer", run=run, layer=layer)
    assert header["account"]["shown"] == RECORDS
    return arrays["steps"].astype(int), arrays["state"] & states.STATE, arrays["delta"]


def test_every_record_of_every_run_is_known_and_accounted_for(tab):
    runs = tab.json("/index")["runs"]
    assert sorted(run["name"] for run in runs) == sorted(NAMES)
    assert {run["origin"] for run in runs} == {runs[0]["origin"]}
    for run in runs:
        account = dict.fromkeys(run["account"], 0) | {"offered": RECORDS, "shown": RECORDS}
        assert run["account"] == account
        assert (run["last_step"], run["closed"]) == (EPOCHS * STEPS_PER_EPOCH, True)


def test_dense_stops_by_itself(tab):
    for layer in CONVOLUTIONS:
        _, state, _ = cells(tab, "dense", layer)
        assert (state[:, 10] == states.MOVING).all()
        assert (state[:, -1] == states.SETTLED).mean() > 0.9


def test_layers_freeze_from_the_input_on_and_the_last_one_thaws(tab):
    for layer, epoch in zip(CONVOLUTIONS, FREEZE, strict=True):
        steps, state, _ = cells(tab, "freeze_steps", layer)
        frozen = (state == states.FROZEN).all(0)
        assert not frozen[steps <= epoch * STEPS_PER_EPOCH].any()
        assert frozen[(steps > epoch * STEPS_PER_EPOCH) & (steps <= THAW * STEPS_PER_EPOCH)].all()
        assert frozen[-1] == (layer != CONVOLUTIONS[-1])
    assert (state == states.REACTIVATED).sum() == 5 * 32


@pytest.mark.parametrize("run", ["prune_channels_s0", "prune_channels_s1"])
def test_half_of_the_channels_are_pruned_in_steps_and_stay_so(tab, run):
    for layer in (*CONVOLUTIONS, "head/hidden"):
        steps, state, _ = cells(tab, run, layer)
        share = (state == states.PRUNED).mean(0)
        assert (np.diff(share) >= 0).all()
        assert len(np.unique(share)) == 1 + len(PRUNE)
        assert share[-1] == 0.5
        assert share[steps <= PRUNE[0] * STEPS_PER_EPOCH].max() == 0


def test_two_seeds_prune_some_of_the_same_channels(tab):
    pruned = [cells(tab, f"prune_channels_s{seed}", "block2/conv2")[1][:, -1] for seed in (0, 1)]
    both, either = (
        combine(pruned[0] == states.PRUNED, pruned[1] == states.PRUNED).sum()
        for combine in (np.logical_and, np.logical_or)
    )
    assert 0 < both < either


def test_what_leaks_moves_by_rate_times_decay_and_never_settles(tab):
    for layer in CONVOLUTIONS[2:]:
        steps, state, delta = cells(tab, "leak_weight_decay", layer)
        late = steps > (LEAK + 8) * STEPS_PER_EPOCH
        assert (state[:16, late] == states.MOVING).all()
        leaked = np.exp2(delta[:16, late] / 16)
        np.testing.assert_allclose(leaked, 2e-4, rtol=0.045)
        others = np.exp2(delta[16:, late] / 16)
        assert others.std() > leaked.std()
