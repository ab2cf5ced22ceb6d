"""The demo as users call it, and what its story must show in both loaders."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from demo import LOTTERY, NAMES, lottery
from demo.digits import STEPS_PER_EPOCH
from demo.frameworks import FRAMEWORKS
from demo.keras_runs import PROBE, PROBE_EVERY
from demo.story import CONVOLUTIONS, EPOCHS, EVERY, FREEZE, LEAK, LEAKING, PRUNE, PRUNED, THAW
from tb_pastnet.core import channel_states
from tests.blocks import all_records
from tests.tensorboards import LOADERS, board
from tools.steps import ROOT

pytestmark = pytest.mark.prove
RECORDS = 1 + EPOCHS * STEPS_PER_EPOCH // EVERY  # that of the first step, too
SINGLE = [name for name in NAMES if name != LOTTERY]
ROUNDS = [f"{LOTTERY}/round_{number}" for number in range(1 + lottery.SHOWN)]
RANDOM = f"{LOTTERY}/random_{lottery.SHOWN}"
TICKET = [f"dense{number}" for number in range(4)] + ["logits"]
LEAKS = {"keras": LEAKING, "torch": 2 * LEAKING, "jax": LEAKING}
"""How many channels of each layer leak: torch can freeze whole weights alone."""

of_keras = pytest.mark.parametrize("framework", ["keras"], indirect=True)


@pytest.fixture(scope="module", params=FRAMEWORKS)
def framework(request):
    for package in FRAMEWORKS[request.param].packages:
        pytest.importorskip(package, reason=f"needs {package}")
    return request.param


@pytest.fixture(scope="module")
def logdir(framework, tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs") / "demo"
    names = FRAMEWORKS[framework].runs
    command = [sys.executable, "-m", "demo", "--framework", framework, "--once"]
    subprocess.run([*command, "--logdir", folder, "--runs", *names], cwd=ROOT, check=True)
    return folder


@pytest.fixture(scope="module", params=LOADERS)
def tab(request, logdir):
    with board(logdir, request.param) as running:
        yield running


def cells(tab, run, layer):
    """The steps, and the state of each channel (channels, records)."""
    header, arrays = tab.arrays("/layer", run=run, layer=layer)
    assert header["account"]["shown"] == RECORDS
    return arrays["steps"].astype(int), arrays["state"] & channel_states.STATE, arrays["delta"]


def sparsity(tab, run):
    """The pruned weights at each record, and how many there are."""
    header, arrays = all_records(tab, run=run)
    return arrays["pruned"].sum(0), sum(header["prunable"])


def kept_shares(tab, run, layer):
    """The share of each channel that is kept at the last record, as decoded."""
    channels = tab.arrays("/layer", run=run, layer=layer)[0]["channels"]
    each = [tab.json("/channel", run=run, layer=layer, channel=c) for c in range(channels)]
    return [answer["kept"][-1] for answer in each]


def runs_of(framework):
    """The runs that are trained."""
    return [*SINGLE, *ROUNDS, RANDOM] if framework == "keras" else SINGLE


def test_every_record_of_every_run_is_known_and_accounted_for(tab, framework):
    runs = {run["name"]: run for run in tab.json("/index")["runs"]}
    assert sorted(runs) == sorted(runs_of(framework))
    last, rewound = lottery.EPOCHS * STEPS_PER_EPOCH, lottery.REWIND * STEPS_PER_EPOCH
    for name, run in runs.items():
        records, steps = RECORDS, EPOCHS * STEPS_PER_EPOCH
        if name not in SINGLE:
            begin = rewound if name in ROUNDS[1:] else 0
            records = last // lottery.SHOWN_EVERY - begin // lottery.SHOWN_EVERY
            # The first step, and the last one of each call of `fit`: one more from the beginning.
            records += 1 if begin else 2
            steps = last
        account = dict.fromkeys(run["account"], 0) | {"offered": records, "shown": records}
        assert run["account"] == account
        assert (run["last_step"], run["closed"]) == (steps, True)


def test_runs_of_one_network_have_the_same_origin(tab):
    origin = {run["name"]: run["origin"] for run in tab.json("/index")["runs"]}
    assert len({origin[name] for name in SINGLE}) == 1


@of_keras
def test_rounds_have_the_same_origin_and_the_random_ticket_another(tab):
    origin = {run["name"]: run["origin"] for run in tab.json("/index")["runs"]}
    assert len({origin[name] for name in ROUNDS}) == 1
    assert len(set(origin.values())) == 3


@of_keras
@pytest.mark.parametrize("number", range(1 + lottery.SHOWN))
def test_the_sparsity_of_each_round_is_that_of_its_rule(tab, number):
    pruned, prunable = sparsity(tab, ROUNDS[number])
    assert prunable == 59_712
    assert (pruned == round((1 - lottery.KEEP**number) * prunable)).all()


@of_keras
def test_the_random_ticket_has_the_masks_of_the_last_round(tab):
    for layer in TICKET:
        kept = [kept_shares(tab, run, layer) for run in (ROUNDS[-1], RANDOM)]
        np.testing.assert_array_equal(*kept)
    assert sparsity(tab, RANDOM)[0][-1] == sparsity(tab, ROUNDS[-1])[0][-1]


@of_keras
@pytest.mark.parametrize("run", SINGLE)
def test_a_probe_shows_how_far_the_function_moved(tab, run):
    header, arrays = tab.arrays("/function", run=run)
    assert [given["shape"] for given in header["probe"]] == [[PROBE, 8, 8, 1]]
    assert arrays["values"].shape[2] == 1 + (RECORDS - 1) // PROBE_EVERY
    relative, *_, decisions = arrays["values"]
    names = [(place["kind"], place["name"]) for place in header["places"]]
    assert names[-2:] == [("layer", "head/logits"), ("output", "head")]
    assert np.isfinite(arrays["values"][:, -1]).all()
    assert decisions[-1].max() > 0
    assert np.median(relative[-1, -5:]) < np.median(relative[-1, :5]) / 2
    if run == "freeze_steps":
        frozen = arrays["steps"] > FREEZE[0] * STEPS_PER_EPOCH
        assert not relative[names.index(("layer", CONVOLUTIONS[0])), frozen].any()


def test_dense_stops_by_itself(tab):
    for layer in CONVOLUTIONS:
        _, state, _ = cells(tab, "dense", layer)
        # A ReLU of torch may be dead from the first steps on.
        assert (state[:, 10] == channel_states.MOVING).mean() > 0.85
        assert (state[:, -1] == channel_states.QUIET).mean() > 0.9


def test_layers_freeze_from_the_input_on_and_the_last_one_thaws(tab):
    for layer, epoch in zip(CONVOLUTIONS, FREEZE, strict=True):
        steps, state, _ = cells(tab, "freeze_steps", layer)
        frozen = (state == channel_states.FROZEN).all(0)
        assert not frozen[steps <= epoch * STEPS_PER_EPOCH].any()
        assert frozen[(steps > epoch * STEPS_PER_EPOCH) & (steps <= THAW * STEPS_PER_EPOCH)].all()
        assert frozen[-1] == (layer != CONVOLUTIONS[-1])
    assert (state == channel_states.REACTIVATED).sum() == 5 * 32


@pytest.mark.parametrize("run", ["prune_channels_s0", "prune_channels_s1"])
def test_half_of_the_channels_are_pruned_in_steps_and_stay_so(tab, run):
    for layer in PRUNED:
        steps, state, _ = cells(tab, run, layer)
        share = (state == channel_states.PRUNED).mean(0)
        assert (np.diff(share) >= 0).all()
        assert len(np.unique(share)) == 1 + len(PRUNE)
        assert share[-1] == 0.5
        assert share[steps <= PRUNE[0] * STEPS_PER_EPOCH].max() == 0


def test_two_seeds_prune_some_of_the_same_channels(tab):
    pruned = [cells(tab, f"prune_channels_s{seed}", "block2/conv2")[1][:, -1] for seed in (0, 1)]
    both, either = (
        combine(pruned[0] == channel_states.PRUNED, pruned[1] == channel_states.PRUNED).sum()
        for combine in (np.logical_and, np.logical_or)
    )
    assert 0 < both < either


def test_what_leaks_is_shown_as_frozen_and_violated_from_the_first_record_on(tab, framework):
    leaking = LEAKS[framework]
    for layer in CONVOLUTIONS[2:]:
        _, arrays = tab.arrays("/layer", run="leak_weight_decay", layer=layer)
        after = arrays["steps"] > LEAK * STEPS_PER_EPOCH
        state = arrays["state"]
        assert (state[:leaking, after] == channel_states.FROZEN | channel_states.VIOLATED).all()
        assert not (state[leaking:] & channel_states.VIOLATED).any()
        assert not (state[:, ~after] & channel_states.VIOLATED).any()


def test_what_leaks_moves_by_rate_times_decay(tab, framework):
    leaking = LEAKS[framework]
    for layer in CONVOLUTIONS[2:]:
        steps, _, delta = cells(tab, "leak_weight_decay", layer)
        late = steps > LEAK * STEPS_PER_EPOCH
        leaked = delta[:leaking, late]
        np.testing.assert_allclose(leaked, 2e-4, rtol=0.045)
        others = cells(tab, "leak_weight_decay", CONVOLUTIONS[1])[2][:, late]
        assert others.std() > leaked.std()


def test_the_audit_finds_the_leak_with_its_cause_and_nothing_else(tab, framework):
    leaking = LEAKS[framework]
    for run in runs_of(framework):
        answer = tab.json("/violations", run=run)
        if run != "leak_weight_decay":
            assert answer["total"] == 0
            continue
        assert answer["total"] == 2 * leaking
        violations = answer["violations"]
        assert {entry["layer"] for entry in violations} == set(CONVOLUTIONS[2:])
        assert {entry["channel"] for entry in violations} == set(range(leaking))
        assert {entry["cause"] for entry in violations} == {"weight_decay"}
        assert {entry["first_step"] for entry in violations} == {LEAK * STEPS_PER_EPOCH + EVERY}
